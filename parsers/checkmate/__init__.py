"""Dumps of the CheckMate testbed: snapshots of operators and senders' logs, as checkpoints and messages.

Everything that a dump does not say (how many partitions there are and where they run, which snapshots an earlier
recovery undid) is inferred from names or becomes a finding. The testbed itself is not needed, and no pickle is run.

- `parser`: the dump as tables of checkpoints and messages
- `whole_dump`: findings about it as a whole: what was inferred, what is missing, what came before
- `dump`: a listing, put in order: units with their snapshots, logs, what is missing
- `names`: names of files and channels, and the deployment that they tell
"""
