"""Recovery lines: found, explained, proved, replayed from."""
