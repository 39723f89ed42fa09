"""Compressed blocks: by every codec, and as pages of Parquet that are shorter or longer than they say."""
