"""Campaigns on live engines: jobs that are killed and damaged, cklog's answer, and the restart that proves it.

The truth comes from the engine and from the data. cklog runs as a program, and nothing of it is imported.
"""
