"""Runs of connectors' offsets."""
