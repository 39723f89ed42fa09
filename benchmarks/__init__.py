"""What cklog costs, beside others: `python benchmarks/run.py` writes the tables of docs/speed.md."""
