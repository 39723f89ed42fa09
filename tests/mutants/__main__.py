"""`python -m tests.mutants`: put faults into the rooms that decide, one at a time, and say which survive."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.conftest import REPOSITORY
from tests.mutants.faults import Fault, fault, sites
from tests.mutants.rooms import CORE, DECODERS, files
from tests.mutants.trial import Copy

EXPLAINED = REPOSITORY / "docs" / "testing.md"


def main() -> None:
    """Exit with 1 if a fault survives that docs/testing.md does not explain."""
    options = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    options.add_argument("--count", type=int, default=75, help="how many faults, as many of each room; 0: all")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--room", action="append", choices=(*CORE, *DECODERS), help="only this room; repeatable")
    options.add_argument("--match", default="", help="only faults whose name has this in it")
    options.add_argument("--quick", action="store_true", help="quick tests only: what survives is tried again without")
    options.add_argument("--list", action="store_true", help="only name them")
    asked = options.parse_args()
    chosen = drawn(asked.room or [*CORE, *DECODERS], asked.count, asked.seed, asked.match)
    if asked.list:
        print(*(one.name for _, one in chosen), sep="\n")
        return
    explained = EXPLAINED.read_text().replace("\\|", "|") if EXPLAINED.is_file() else ""  # as a table writes it
    survivors = []
    with Copy(asked.quick) as copy:
        for number, (room, one) in enumerate(chosen, 1):
            began = time.monotonic()
            survived, last = copy.survives(room, one)
            known = one.name in explained
            word = "killed" if not survived else "explained" if known else "SURVIVED"
            took = time.monotonic() - began
            print(f"{number}/{len(chosen)} {word} {took:.0f} s: {one.name} (line {one.line}) {last}", flush=True)
            survivors += [one.name] if survived and not known else []
    print(f"{len(chosen)} faults, {len(survivors)} of them survive unexplained")
    print(*survivors, sep="\n")
    sys.exit(1 if survivors else 0)


def drawn(rooms: list[str], count: int, seed: int, match: str) -> list[tuple[str, Fault]]:
    """Faults room by room: as many of each, in an order that the seed decides."""
    found: list[tuple[str, Fault]] = []
    for at, room in enumerate(rooms):
        texts = [(path, (REPOSITORY / path).read_text()) for path in files(room)]
        every = [(path, text, number, way) for path, text in texts for number, way in sites(text)]
        random.Random(seed).shuffle(every)
        wanted, mine = (count + len(rooms) - 1 - at) // len(rooms), 0
        for path, text, number, way in every:
            if count and mine == wanted:
                break
            made = fault(path, text, number, way)
            if match in made.name:
                found.append((room, made))
                mine += 1
    return found


if __name__ == "__main__":
    main()
