"""One module per command: arguments in, analysis called, result rendered."""
