"""Runs of state stores."""
