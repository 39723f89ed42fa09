"""Answers on the samples, byte for byte, on both engines."""
