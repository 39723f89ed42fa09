"""What came of a long campaign so far, in a file: it goes on where it was ended, on the same tree only."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.fuzz import campaign
from tests.fuzz.campaign import Sums

_BLOCK = 50_000
"""Cases after which the file is written."""


def tree() -> str:
    """A digest of the program and of the harness: what cases come of."""
    found = hashlib.sha256()
    for folder in ("cklog", "parsers", "commands", "tests/fuzz", "sample_logs"):
        for path in sorted(path for path in (REPOSITORY / folder).rglob("*") if path.is_file()):
            if "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(REPOSITORY)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def run(place: Path, first: int, count: int, jobs: int, shared: bool, only: str) -> Sums:
    """Try what of the cases the file does not have yet, block by block."""
    asked = {"first": first, "count": count, "shared": shared, "only": only, "tree": tree()}
    sums = Sums()
    if place.exists():
        kept = json.loads(place.read_text())
        if kept["asked"] != asked:
            sys.exit(f"{place}: of other cases, or of another tree")
        sums = _read(kept["sums"])
        print(f"{place}: goes on after {sums.count} cases", file=sys.stderr)
    while sums.count < count:
        sums.merge(campaign.run(first + sums.count, min(_BLOCK, count - sums.count), jobs, shared, only))
        written = place.with_suffix(".new")
        written.write_text(json.dumps({"asked": asked, "sums": vars(sums)}))
        written.replace(place)
    return sums


def _read(said: dict[str, object]) -> Sums:
    known = Sums()
    for name, value in said.items():
        before = getattr(known, name)
        setattr(known, name, Counter(value) if isinstance(before, Counter) else type(before)(value))  # type: ignore[call-overload]
    return known
