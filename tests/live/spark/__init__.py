"""Campaign against Spark."""
