"""Mutation tests of our own: one small fault at a time in the rooms that decide, and whether a test notices.

    python -m tests.mutants --count 75 --seed 0

`faults` makes the faults, from the syntax tree. `rooms` says which rooms decide, and which tests mirror each. `trial`
puts a fault into a copy of the tree and runs those tests there. What survives is killed by a new test, or stands with
its reason in docs/testing.md.
"""
