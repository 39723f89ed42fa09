"""Two answers held against each other."""
