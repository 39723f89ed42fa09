"""Tests: what each folder is for is told in docs/tests.md."""
