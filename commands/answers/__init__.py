"""Commands about answers: what their words mean, and what two of them have different.

- `diff`: two answers, or two runs, held against each other
- `report`: all answers about a run in one document
- `explain`: a finding, an exit code or an error
"""
