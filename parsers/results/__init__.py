"""Result files of a query, read and written again with the trust of each result.

Only files are handled here; which results can be trusted is decided in `cklog.impact`, and applied to times by
`cklog.inputs.annotate`, whose tasks call `files`.

- `files`: result files as splits, and writing the part of a split, of Parquet
- `lines`: the same of JSON lines, whose other bytes are left as they are
"""
