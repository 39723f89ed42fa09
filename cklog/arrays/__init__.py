"""Arrays of integers without a subject: sorting, spans, graphs, codes of strings, many binary searches at once.

Nothing here knows what a checkpoint is; what a number means is said where it is used.

- `types`: names for the numpy arrays that the whole tree hands around
- `blocks`: rows folded block by block while they are decoded
- `buffers`: arrays that a decoder fills, the only ones whose elements are not set
- `columns`: columns of Arrow tables as arrays of integers, masks and codes
- `digraph`: directed graphs: what reaches what
- `order`: sorting rows by several integers, and taking rows of a table
- `loops`: plain loops, run as they stand on few rows and compiled on many
- `search`: one binary search per query, all queries at once
- `spans`: sets of sequence numbers as half-open ranges
"""
