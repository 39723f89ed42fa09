"""A process that runs cases of one decoder: what both decoders say of each, or only what cklog's says once more.

It reads a range of cases a line, and answers each with a line of JSON. Which case it is at, and with which of the
decoders, stands in a file of two numbers, so that it is known what ended the process.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import random
import resource
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.differential.mutations import Damage
from tests.differential.verdicts import NOT_ASKED, Decoder, Outcome, Tally, Verdict, judge

MAKING, READING, REFERRING = 0, 1, 2
PLACE = struct.Struct("<qq")


def case_of(decoder: Decoder, case: int) -> tuple[bytes, Damage]:
    """Return the input of a case, and what was done to it."""
    damage = Damage(random.Random(f"{decoder.name}/{case}"))
    return damage.outside(decoder.make(damage), decoder.repair), damage


def read_outcome(decoder: Decoder, data: bytes) -> tuple[Outcome | None, str]:
    """Return what cklog says; None, and why, where it let an exception through."""
    try:
        return decoder.read(data), ""
    except Exception:  # whatever it is, it is a bug
        return None, traceback.format_exc(limit=-6)


def digest_of(outcome: Outcome | None, why: str) -> str:
    """Return a short name of an outcome, by which two runs are compared."""
    text = why.splitlines()[-1] if outcome is None else f"{outcome.how} {outcome.value!r} {outcome.why}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def try_case(decoder: Decoder, case: int, at: Any = None) -> tuple[Verdict, str, Damage]:
    """Run both decoders on one case; return the verdict, the digest of cklog's outcome, and the damage."""
    _mark(at, case, MAKING)
    data, damage = case_of(decoder, case)
    _mark(at, case, READING)
    ours, why = read_outcome(decoder, data)
    digest = digest_of(ours, why)
    if ours is None:
        return Verdict("exception", why), digest, damage
    _mark(at, case, REFERRING)
    try:
        asked = decoder.asked_always or ours.how == "value"
        theirs = decoder.refer(data) if asked else Outcome("refused", why="not asked")
    except MemoryError:
        theirs = Outcome("limit", why="the reference ran out of memory")
    return judge(decoder, data, ours, theirs), digest, damage


def tally_of(decoder: Decoder, cases: range, at: Any = None) -> tuple[Tally, list[str]]:
    """Run both decoders on cases; return what came of them, and the digests."""
    tally, digests, began = Tally(), [], time.perf_counter()
    for case in cases:
        verdict, digest, damage = try_case(decoder, case, at)
        tally.cases += 1
        tally.kinds[verdict.kind] += 1
        tally.damaged[f"{damage.told}: {verdict.kind}"] += 1
        if verdict.kind in ("cklog alone refuses", NOT_ASKED):
            tally.refusals[_class_of(verdict.detail)] += 1
        elif verdict.kind in ("accepted though refused", "different values", "exception"):
            tally.wrong.append((case, verdict.kind, verdict.detail))
        digests.append(digest)
    tally.seconds = time.perf_counter() - began
    return tally, digests


def again(decoder: Decoder, cases: range, at: Any = None) -> list[str]:
    """Run cklog's decoder alone on cases, the last one first; return the digests in the order of the cases."""
    digests = []
    for case in reversed(cases):
        data, _ = case_of(decoder, case)
        _mark(at, case, READING)
        digests.append(digest_of(*read_outcome(decoder, data)))
    return digests[::-1]


def _class_of(why: str) -> str:
    """Return a reason without its numbers and quoted parts, so that reasons of one kind are one."""
    text = "".join("#" if c.isdigit() else c for c in why.split("\n")[0])[:60]
    while "##" in text:
        text = text.replace("##", "#")
    return text


def _mark(at: Any, case: int, phase: int) -> None:
    if at is not None:
        PLACE.pack_into(at, 0, case, phase)


def _commands() -> Iterator[range]:
    for line in sys.stdin:
        first, end = map(int, line.split())
        yield range(first, end)


def main(name: str, place: str, once_more: bool) -> None:
    """Serve a campaign: ranges in, tallies and digests out."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is none of ours
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from cklog.arrays import loops
    from tests.differential.decoders import decoder_of

    loops.FEW_ROWS = -1  # machine code, however few the rows
    decoder = decoder_of(name)
    resource.setrlimit(resource.RLIMIT_AS, (decoder.memory, decoder.memory))
    with Path(place).open("r+b") as file, mmap.mmap(file.fileno(), PLACE.size) as at:
        for cases in _commands():
            if once_more:
                said: dict[str, Any] = {"digests": again(decoder, cases, at)}
            else:
                tally, digests = tally_of(decoder, cases, at)
                said = {"tally": vars(tally), "digests": digests}
            print(json.dumps(said), file=out, flush=True)
