"""A small folder for every finding, exit code, error and action, and the command that prints it.

- `cases`: how a case is written down, and what folders are made of
- the others: the cases, a file a kind of input
- `test_produced`: each is printed as its case says, and nothing that is documented lacks a case
"""
