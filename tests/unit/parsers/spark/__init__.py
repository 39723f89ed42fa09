"""Spark: state stores and their files."""
