"""The rollback-dependency graph of a history: intervals, messages between them, zigzag paths."""
