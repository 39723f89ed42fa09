"""State stores of a Spark checkpoint: which version each file is, and whether it can be read.

Both of Spark's providers are known, HDFS-backed and RocksDB; neither is needed to read their files. To which batch all
stores can go back is judged in `cklog.runs.batches.state_line`.

- `versions`: the versions of all stores as of one line of batches, with the flaws of what was read
- `of_batches`: how many partitions the state of each batch has
- `listing`: which file is what
- `schemas`: the schemas of keys and values
- `required`: which stores an operator must have, with its metadata and without
- `files`: whether a file can be read, from cheap to dear
- `checksums`: what proves a file's bytes, Hadoop's checksums and Spark's own
- `tables`: what RocksDB's tables prove of themselves
- `lz4_blocks`: the compressed streams that Spark writes
"""
