"""Make the data, run every table of docs/speed.md beside its peers, write the page: `python benchmarks/run.py`.

Needs the extras `dev` and `bench`, Java 17, strace, 30 GB of disk and 12 GB of memory; what is missing leaves out the
tables that need it. With `--quick` data are small and pairs few: whether everything runs, no numbers to keep, so that
the page is written only where `--page` says so. Inputs stay in `--data` and are made once.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.data import Data  # noqa: E402
from benchmarks.page import with_table  # noqa: E402
from benchmarks.registry import Room, Table, tables  # noqa: E402
from benchmarks.timing import REPOSITORY  # noqa: E402

PAIRS, QUICK_PAIRS = 7, 1


def chosen(words: list[str] | None) -> argparse.Namespace:
    """Return the options."""
    names = ", ".join(tables())
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="small data, one pair, nothing written")
    options.add_argument("--tables", default="", metavar="A,B", help=f"these tables alone: {names}")
    options.add_argument("--largest", action="store_true", help="the largest sizes, too: hours, and 60 GB of disk")
    options.add_argument("--pairs", type=int, help=f"how often each is run: {PAIRS}, with --quick {QUICK_PAIRS}")
    options.add_argument("--data", type=Path, default=REPOSITORY / "build" / "benchmarks", help="where inputs are kept")
    options.add_argument("--page", type=Path, help="the page that is written: docs/speed.md, with --quick none")
    return options.parse_args(words)


def measure(table: Table[Any], room: Room, options: argparse.Namespace) -> str:
    """Return a table and how it was measured; each row is told as soon as it is there."""
    sizes = table.quick if options.quick else [*table.full, *(table.largest if options.largest else ())]
    begun, rows = time.perf_counter(), []
    for row in table.rows(room, sizes):
        rows.append(row)
        print(f"{table.name}: {' | '.join(row)}", file=sys.stderr, flush=True)
    took = time.perf_counter() - begun
    print(f"{table.name}: took {took:.0f} s", file=sys.stderr, flush=True)
    kind = "quick sizes, no numbers to keep" if options.quick else "full sizes"
    day = datetime.datetime.now(datetime.UTC).date()
    pairs = f"{room.pairs} pair{'s' if room.pairs > 1 else ''} at most"
    return f"{table.markdown(rows)}\n*Measured {day}: {kind}, {pairs}, {os.cpu_count()} cores.*\n"


def main(words: list[str] | None = None) -> int:
    """Return 1 where a table failed or could not be measured; the others are written all the same."""
    options = chosen(words)
    known = tables()
    names = [name for name in options.tables.split(",") if name] or list(known)
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no such table: {', '.join(unknown)}; there are {', '.join(known)}")
    page = options.page or (None if options.quick else REPOSITORY / "docs" / "speed.md")
    pairs = options.pairs or (QUICK_PAIRS if options.quick else PAIRS)
    room = Room(Data(options.data.resolve()), pairs, warm=not options.quick)
    failed = []
    for name in names:
        if missing := known[name].missing():
            print(f"{name}: left out, it needs {', '.join(missing)}", file=sys.stderr)
            failed.append(name)
            continue
        try:
            content = measure(known[name], room, options)
        except Exception:  # the others are still worth having
            traceback.print_exc()
            failed.append(name)
            continue
        print(f"{name}\n\n{content}", flush=True)
        if page is not None:
            page.write_text(with_table(page.read_text(encoding="utf-8"), name, content), encoding="utf-8")
    if failed:
        print(f"without {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
