"""Jobs that feed each other: real queries in a chain, killed and restarted."""
