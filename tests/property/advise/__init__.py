"""Advice against definitions, record by record."""
