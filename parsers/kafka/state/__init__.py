"""Offsets that state stores keep inside RocksDB.

- `rocksdb`: column families of a RocksDB, read from a copy by the library of the extra `rocksdb`
- `child`: the process that opens the copy, and may die of it
- `offsets`: what Kafka Streams from 4.3 on, and Quix Streams, write there
"""
