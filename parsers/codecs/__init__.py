"""Checksums that several formats share, on bytes. What a format does with one that is wrong is that format's business.

- `hadoop_crc`: the `.NAME.crc` side files that Hadoop's local file system writes beside its files
- `xxhash32`: XXH32 of many blocks at once, for the checksums of lz4 frames
"""
