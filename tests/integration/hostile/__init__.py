"""Hostile surroundings: the working directory, settings, names, and files that change or are not what they seem."""
