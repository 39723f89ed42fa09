"""Protocols weighed against each other: by brute force from the definitions, and by simulating each."""
