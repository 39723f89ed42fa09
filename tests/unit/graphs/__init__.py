"""Checkpoint graphs in each format, and Z-cycles."""
