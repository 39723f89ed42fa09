"""Partitions of a broker's data folder."""
