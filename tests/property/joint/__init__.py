"""Several jobs in one line, against every vector simulated."""
