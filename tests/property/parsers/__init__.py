"""Parsers against plain readers of one record at a time, a file for each system."""
