"""Checkpoint stores by key, in the layout of US patent 9,471,438 (adaptive incremental checkpointing).

A store becomes rows of `cklog.inputs.pieces.PIECES`, a base or delta of one variable each, and findings of what is
wrong in it. Which chains of them can be restored is not decided here, but by `cklog.chains`.

- `parser`: a folder of stores, read once
- `export`: a store exported as JSON lines
- `leveldb`: a store in LevelDB, read from a copy
- `keys`: keys and the layouts of numbers
- `values`: values put together from their chunks
- `index`: index data: the variables of each checkpoint, and what each stands on
- `pieces`: rows and findings from values and index data
"""
