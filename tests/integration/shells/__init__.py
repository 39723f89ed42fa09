"""Real shells, on a terminal."""
