"""Extent and replay along a whole output queue."""
