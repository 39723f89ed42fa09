"""Checkpoint records put in order and turned into arrays: the input of every analysis of lines."""
