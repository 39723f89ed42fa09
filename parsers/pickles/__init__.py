"""Pickles read without building objects."""
