"""Commands about answers: what to do, what their words mean, and what two of them have different.

- `diff`: two answers, or two runs, held against each other
- `runbook`: what to do about a run, step by step
- `explain`: a finding, an exit code or an error
"""
