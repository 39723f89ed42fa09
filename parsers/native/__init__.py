"""The native run folder."""
