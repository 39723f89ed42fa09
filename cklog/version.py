"""The version of cklog."""

__version__ = "0.1.0"
