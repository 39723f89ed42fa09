"""Faults that come while cklog runs: files that change under it, signals, processes that die, no room, no memory.

`python -m tests.faults` injects them by number and counts what may not happen: a wrong answer, a traceback, exit 70,
something left behind. What damage of the files themselves may do is `tests.fuzz`'.

* `subjects`: the folders and the questions
* `process`: a command in a process group of its own, with its own place for temporary files, and what is left of it
* `meanwhile`: Python code that runs in the command's process, between the listing of a folder and the first read
* `cases`: one case by its number: which fault, of which command, and what is wrong with how it ended
* `files`, `ends`, `scarce`: the faults: of files, of processes, of room and memory
"""
