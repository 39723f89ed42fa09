"""Tables as sinks, by their own libraries: streaming queries that write to them, killed and run again."""
