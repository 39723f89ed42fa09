"""Commands about answers: what their words mean, what two of them have different, and those of many runs at once.

- `diff`: two answers, or two runs, held against each other
- `explain`: a finding, an exit code or an error
- `scan`: every run below some folders
"""
