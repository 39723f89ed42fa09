"""Tests of `parsers/tables`."""
