"""The tables of docs/speed.md: a module for a subject, each with `TABLES`."""
