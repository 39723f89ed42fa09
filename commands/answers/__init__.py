"""Commands about answers: what to do, what their words mean, what two have different, and those of many runs at once.

- `diff`: two answers, or two runs, held against each other
- `runbook`: what to do about a run, step by step
- `report`: all answers about a run in one document
- `explain`: a finding, an action, an exit code or an error
- `scan`: every run below some folders
"""
