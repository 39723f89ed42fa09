"""Plain pickles, and what is none."""
