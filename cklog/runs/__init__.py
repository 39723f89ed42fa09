"""A room for each kind of run, and the choice between them by what a parser offers."""
