"""Checkpoint stores in the layout of the patent, as files and in LevelDB."""
