"""Files of JSON lines, plain or compressed: read in byte ranges, decoded many lines at once where they have one shape.

Every line is judged by the rules of `cklog.parsers.tables.records`; what a line means is its table's business.

- `reader`: the rows of a split, and its bad lines as damage
- `stream`: a file as a stream of whole lines, and how far its bytes are to be believed
- `small`: many small files at once
- `columns`: lines of one shape as columns, all at once
- `walk`: the same byte by byte, by compiled loops, where there are many lines
- `template`: what the first line of a block fixes for all of them
- `words`: eight bytes of many lines at a time: digits, strings' ends, checksums
"""
