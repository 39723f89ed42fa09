"""Tables as sinks: real queries killed and run again, and what users of tables have told."""
