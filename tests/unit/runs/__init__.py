"""The kinds of run, a folder each: what every question answers there."""
