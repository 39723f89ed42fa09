"""Checkpoint graphs: damaged and hostile histories, and second opinions on large runs."""
