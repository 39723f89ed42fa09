"""What stands between the program and a terminal: streams of any encoding, help, pages, and completion in a shell.

- `streams`: stdout and stderr of any encoding, closed or with a reader that stops early
- `help`, `examples`: what `-h` prints
- `printing`: an answer gets out, as whole text, as the verdict alone, or through a pager
- `completion`: what a shell is offered
"""
