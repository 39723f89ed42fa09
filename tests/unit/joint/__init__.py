"""Several jobs in one line: its rules, its evidence, its answer."""
