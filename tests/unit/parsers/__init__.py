"""Parsers, a folder for each system or format; and the door through which somebody else's comes."""
