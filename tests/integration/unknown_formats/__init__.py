"""Formats, versions and codecs that cklog does not know: what is said of them."""
