"""Policies of retention: a number, a time, pins."""
