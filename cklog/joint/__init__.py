"""Several jobs that feed each other through topics or tables: one line for all, and in which order they restart."""
