"""What parsers hand over: one module for each kind of evidence, values and protocols only."""
