"""A run given as snapshots of whole jobs: Flink."""
