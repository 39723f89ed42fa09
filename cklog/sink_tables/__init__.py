"""What the tables that a job writes to say of its recovery line: the table remembers what it has taken.

A table drops what it is offered under a number that it has taken, and takes what comes under a greater one. So a line
is held against each table: what will come twice, once or never, which line fits, to which commit a table goes back.

- `model`: a restart as a sink sees it; what a table says of it
- `numbers`: sets of numbers as spans
- `rules`: whom a sink asks for after a restart, and what it drops, by engine and format
- `held`: which numbers of a job the rows of a table are of
- `judge`: a restart held against a table
- `rollback`: a table as it is after it went back to a commit, and the statements that take it there
- `fitting`: the newest line that fits all tables, else the rollback that makes one fit
- `findings`: what is wrong, as findings and in sentences
- `outputs`: tables as outputs of a job that others read
- `naming`: `--sink NAME=URI`, and tables opened by what the parsers offer
- `beside`: a line with what the tables say
- `view`: what they say, as sentences and rows
"""
