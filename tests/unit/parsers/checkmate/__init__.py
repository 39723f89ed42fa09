"""Dumps of the CheckMate testbed."""
