"""Flink killed at random moments, damaged, asked about and restored; one trial after the other, by seed.

    python -m tests.live.flink --trials 100 --seed 0 --version 1.20.5
    python -m tests.live.flink --trials 100 --seed 0 --version 1.20.5 --trial 17 --keep kept

`kinds` are the jobs, `engine` runs and kills them, `damage` does what a disk or a person does to the files, `asking`
runs cklog and its runbooks, `trial` is all of that once, `judge` says what it proves, and `campaign` adds up.
"""
