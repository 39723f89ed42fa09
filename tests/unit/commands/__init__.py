"""The command line: exit codes, streams, and messages."""
