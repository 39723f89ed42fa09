"""Policies of check records, on logs that a person can follow."""
