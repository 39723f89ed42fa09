"""Runs of micro-batches."""
