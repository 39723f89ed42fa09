"""Checksums and codecs that several formats share."""
