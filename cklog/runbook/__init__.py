"""Runbooks: what to do about a crashed run, step by step, each with how to see that it worked and how to undo it.

- `model`: a step, the variables that it takes, a runbook
- `shell`: commands of which every word is quoted, or none
- `frame`: what all kinds of run have in common: stop, copy, ask again; and the whole answer
- `tables`: steps for tables that go back before the restart
- `script`: a runbook as a shell script that stops at the first doubt
- `view`: the same as Markdown and as rows
"""
