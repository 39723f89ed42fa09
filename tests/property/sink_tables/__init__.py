"""Lines held against tables: what is foretold is what jobs do that really restart."""
