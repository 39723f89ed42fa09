"""Random cases against oracles, a folder or a file for each room of cklog."""
