"""Checksums and encodings that several formats share, and what they guard, on bytes. What a format does with a wrong
one is its own business.

- `avro`: Avro's files of records, by the schema that each carries
- `decompression`, `streams`, `zip_archives`: everything that is decompressed: blocks of a known size, streams, and zip
  archives; a test forbids other decompressors elsewhere
- `stream_heads`: methods and versions of streams that are not known
- `hadoop_crc`: the `.NAME.crc` side files that Hadoop's local file system writes beside its files
- `sst`, `sst_blocks`, `record_log`, `block_checksums`: tables of RocksDB, blocks of entries in them, its log format,
  and the checksums of both
- `byte_stream`, `snappy_frames`: bytes read piece by piece, and Snappy streams as snappy-java frames them
- `leveldb_table`: what LevelDB would allocate to read a table
- `zstd_frames`: whether frames of Zstandard end in a checksum
- `varints`: unsigned numbers of seven bits a byte
- `zeros`: files that are full of zeros
- `xxhash32`: XXH32 of blocks, for the checksums of lz4 frames
"""
