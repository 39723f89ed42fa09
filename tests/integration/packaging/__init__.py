"""What is built from the tree: the same bytes each time, and nothing at all where symbolic links are missing."""
