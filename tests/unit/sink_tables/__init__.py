"""Lines held against tables: how each number fares, and the commands that say so."""
