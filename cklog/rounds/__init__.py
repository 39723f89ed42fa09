"""Coordinated rounds made by tokens (Meteor Shower): how each went, where one hangs, and what a restart takes.

Which rounds are complete is decided by checkpoint records alone, in `cklog.lines.rounds`; tokens only explain.

Public modules:

* `token_rounds`: each round with its tokens, and its individual checkpoints
* `hangs`: why subtasks have no checkpoint of a round
* `burst`: failed nodes: which copies are left, and where each subtask restarts
* `tuples`: the messages that go with a round, saved with checkpoints or preserved at the sources
* `answer`: the answer of `rounds`
* `view`: that answer for people
"""
