"""How scans are run: small splits together, and what a reading may cost."""
