"""Runs of checkpoint records."""
