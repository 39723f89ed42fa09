"""What stands between the program and a terminal: streams, help, pages, completion in a shell, and how far work is.

- `values`: values of a command line that are taken as they are, without a library that converts
- `streams`: stdout and stderr of any encoding, closed or with a reader that stops early
- `help`, `examples`: what `-h` prints
- `printing`: an answer gets out, as whole text, as the verdict alone, or through a pager
- `output_file`: the file of `-o`, which is there as a whole or as it was
- `completion`: what a shell is offered
- `stages`: the stages of an answer, told on stderr as they end (`-v`) or drawn while they last
- `bar`: the drawing, by Rich, which is loaded when there is something to draw
"""
