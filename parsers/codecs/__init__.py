"""Checksums and compressions that several formats share."""
