"""The native run folder: JSON lines, Parquet, and tables that are Kafka partitions."""
