"""What every format of tables shares: the rules of a record, and the parts of parsers that are the same for many.

A row that breaks a rule becomes damage here; what a table is about is said in `cklog.model.schemas`.

- `records`: one JSON object or one column against a table: what is a record, and what is not
- `column_rules`: the same rules on whole columns
- `footers`: what Parquet footers note of row groups, without pyarrow
- `compact`: the protocol that footers and headers of pages are written in
- `parquet_versions`: the versions, types, codecs and encodings of Parquet that are known
- `parquet`: Parquet files of a run folder, by row groups
- `parquet_batches`, `parquet_pages`: rows of any Parquet file within the budgets, by what the headers of its pages say
- `parquet_columns`, `parquet_loops`, `parquet_headers`: pages of the usual kinds, decoded by loops where there are
  many rows
- `records_parser`: the base class of plug-ins whose files are read as a whole
"""
