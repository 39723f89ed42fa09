"""Runs in an object store: a server of S3's protocol that runs here, with a proxy before it that counts and spoils."""
