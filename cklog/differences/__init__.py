"""Two answers held against each other: what a repair, another option or another day changed.

- `told`: an answer as JSON tells it, read from a file or just given
- `rows`: lists of rows, and any other members, compared
- `answer`: what two answers have different
- `view`: the same as sentences and rows
"""
