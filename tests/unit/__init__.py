"""Small cases that a person can follow, a folder for each room of cklog."""
