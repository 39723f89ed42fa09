"""What cklog read, put plainly: rows, damage and findings of one format, for tests to compare."""
