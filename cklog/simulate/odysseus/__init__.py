"""A system on one machine that crashes and recovers (Odysseus: Brand et al., BTW 2017), really run.

- `query`: queries of filters, maps, unions, windows and joins, and their states
- `crash`: a run with a crash and a recovery, beside one without
- `files`: the run as a folder, and the answer of `cklog simulate odysseus`
"""
