"""Whole runs, written to disk and read back, against the exhaustive maximum."""
