"""Plans of deletion: what each kind of run shares that says which files may go. Nothing here deletes anything.

Each kind of run judges its own files, in `cklog.runs.*.retention`; this room has the values and rules they share.

- `plan`: the rows of a plan, their fates, and what they add up to
- `policy`: what somebody asked to keep beyond what recovery needs
- `files`: the files that hold stored checkpoints, as rows of a plan
- `links`: which checkpoints are deltas on which, and what may go because of that
- `linked`: what stays because a link leads to it
- `unknown`: nothing may go where the line depends on a file of an unknown version
- `view`: a plan as sentences and rows, as paths, and as a script to review
"""
