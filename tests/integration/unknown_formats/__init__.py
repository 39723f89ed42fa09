"""Versions, codecs, types and layouts that cklog does not know, in every format that it reads.

- `test_tables`: tables that a job writes to, and Parquet files
- `test_codecs`: compressed streams, Avro, pickles, Java streams, LevelDB
- `test_native`: run folders, and dumps and stores of engines without versions of their own
- `test_flink`, `test_kafka`, `test_spark`: what engines write
"""
