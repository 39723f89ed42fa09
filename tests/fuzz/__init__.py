"""One harness for all formats, samples and commands: damage by seed, and what no damage may do to an answer.

    python -m tests.fuzz --count 1000000 --seed 0 --jobs 2
    python -m tests.fuzz --replay 4711

A *case* is a number. From it follow a subject (`subjects`: the samples, and folders crafted for this), a question about
it, and one or two mutations (`mutations`: of bytes, files, JSON fields, Parquet pages, compressed frames). The same
question about the undamaged folder is the base (`cases`). What may not happen is in `oracle`, and of a file of a later
version in `unknown`; what a mutation excuses, because it wrote a record that a reader has to believe, is in `excuses`.
`worker` runs cases within budgets of CPU and memory, `campaign` runs workers and adds up. `everywhere` is apart: every
file of every folder, and all commands next to each other.
"""
