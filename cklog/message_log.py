"""Kernels for channel logs: what they hold of each channel, as runs of consecutive sequence numbers."""
from __future__ import annotations

import functools
from dataclasses import dataclass

import pyarrow as pa

from cklog.engine import Reduce
from cklog.history import Ints

RUNS = pa.schema([("channel", pa.string()), ("from", pa.int64()), ("to", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())])
RUNS_REDUCE = Reduce(("channel",), {"rows": "sum", "bytes": "sum"}, ("from", "to"))
RANGED = pa.schema([("channel", pa.string()), ("zone", pa.string()), *[RUNS.field(i) for i in range(1, 5)]])
RANGED_REDUCE = Reduce(("channel", "zone"), {"rows": "sum", "bytes": "sum"}, ("from", "to"))
def columns(as_of): return ("channel", "seq", "bytes") + (("time",) if as_of is not None else ())
@dataclass(frozen=True)
class Wanted:
    channels: tuple[str, ...]; start: Ints; end: Ints; as_of: int | None
    def row_group(self, st):
        hi = st.get("seq", (None, None))[1]
        return hi is None or not len(self.start) or hi >= self.start.min()
def in_ranges(w): return functools.partial(_in, w)
def _in(w, batch):
    at = {c: i for i, c in enumerate(w.channels)}
    rows = {}
    for r in batch.to_pylist():
        k = at.get(r["channel"])
        if k is None or r["seq"] < w.start[k] or (w.as_of is not None and r["time"] is not None and r["time"] > w.as_of): continue
        z = "range" if r["seq"] < w.end[k] else "after"
        rows.setdefault((r["channel"], z), []).append((r["seq"], r["bytes"] or 0))
    out = []
    for (c, z), v in rows.items():
        if z == "after": out.append((c, z, int(w.end[at[c]]), max(s for s, _ in v) + 1, len(v), sum(b for _, b in v)))
        else:
            out += [(c, z, s, s + 1, 1, b) for s, b in v]
    return pa.RecordBatch.from_pylist([dict(zip(RANGED.names, o)) for o in out], schema=RANGED)
def runs(batch):
    return pa.RecordBatch.from_pylist([{"channel": r["channel"], "from": r["seq"], "to": r["seq"] + 1, "rows": 1, "bytes": r["bytes"] or 0} for r in batch.to_pylist()], schema=RUNS)
