"""State stores of a Spark checkpoint."""
