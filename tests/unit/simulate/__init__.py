"""The simulators, and the run folders that they write."""
