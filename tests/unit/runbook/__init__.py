"""Runbooks.

- `test_script`: scripts do what the line says, in order, and stop at the first doubt
"""
