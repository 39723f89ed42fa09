"""What the tables that a job writes to say of its recovery line: the table remembers what it has taken.

A table drops what it is offered under a number that it has taken, and takes what comes under a greater one. So a line
is held against each table: what will come twice, once or never, which line fits, to which commit a table goes back.
"""
