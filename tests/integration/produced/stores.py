"""Checkpoint stores by key."""

from __future__ import annotations

from pathlib import Path

from tests.builders.patent import Operator, delta, export, usual
from tests.integration.produced.cases import Asked, produces, sample


@produces("damaged-value", exit=3)
def _(folder: Path) -> Asked:
    pairs = usual().in_chunks(8)
    del pairs["3 INCR 3"]
    return "chain", export(folder, "window", pairs)


@produces("missing-part", exit=3)
def _(folder: Path) -> Asked:
    pairs = usual().pairs
    del pairs["5 INCR"]
    return "chain", export(folder, "window", pairs)


@produces("bad-index-entry", exit=3)
def _(folder: Path) -> Asked:
    pairs = usual().pairs
    pairs["4 INDEX"] = pairs["4 INDEX"][:25] + delta(900, 3, 25)
    return "chain", export(folder, "window", pairs)


@produces("kept-for-deltas", exit=0)
def _(folder: Path) -> Asked:
    pairs = usual().pairs
    del pairs["2 NON"]
    return "chain", export(folder, "window", pairs)


@produces("duplicate-key", exit=3)
def _(folder: Path) -> Asked:
    path = export(folder, "window", usual().pairs) / "window.jsonl"
    path.write_text(path.read_text() + '{"key": "5 INCR", "value_hex": "00"}\n')
    return "chain", folder


@produces("unknown-key", exit=0)
def _(folder: Path) -> Asked:
    return "chain", export(folder, "window", usual().pairs | {"who knows": b"1"})


@produces("unnamed-variable", exit=0)
def _(folder: Path) -> Asked:
    made = Operator()
    for changed in ("ab", "b", "ab"):
        made.checkpoint(len(made.entries) + 1, {name: ("base", name.encode()) for name in changed})
    return "chain", export(folder, "window", made.pairs)


@produces("unrelated-chains", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", sample("patent-store", folder)


@produces("conflicting-piece", exit=3)
def _(folder: Path) -> Asked:
    """Of cklog's own parsers none hands over such pieces: their formats have one place for each."""
    return "chain", export(folder, "window", usual().pairs), "--from", "twice"
