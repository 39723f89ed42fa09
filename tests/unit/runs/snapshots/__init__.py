"""Runs of whole snapshots."""
