"""Checksums that several formats share, and what they guard, on bytes. What a format does with a wrong one is its own
business.

- `hadoop_crc`: the `.NAME.crc` side files that Hadoop's local file system writes beside its files
- `sst`: tables of RocksDB, their footers and blocks; `record_log`: its log format; `block_checksums` of both
- `zeros`: files that are full of zeros
- `xxhash32`: XXH32 of many blocks at once, for the checksums of lz4 frames
"""
