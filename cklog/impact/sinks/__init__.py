"""What a restart from a line does to the results of sinks: the values that every kind of run fills in."""
