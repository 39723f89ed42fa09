"""Many cases of many decoders: two workers a lane, each case in both, started anew where one ends; and the sums."""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.differential.verdicts import AGREE, WRONG, Decoder, Tally
from tests.differential.worker import PLACE, REFERRING

_CHUNK = 500
_RESTARTED_EVERY = 40
"""Chunks of one process: what libraries leave behind does not add up to its limit of memory."""

_STUCK_SECONDS, _STUCK_IN_REFERENCE_SECONDS = 600, 30
"""At one case for so long, in cklog and in a reference, a worker is ended: a busy machine makes nothing a hang."""

_RUNS: tuple[dict[str, str], ...] = (
    {"MALLOC_PERTURB_": "165", "PYTHONHASHSEED": "0"},
    {"MALLOC_PERTURB_": "90", "PYTHONHASHSEED": "1", "NUMBA_BOUNDSCHECK": "1"},
)
"""What differs between the two runs of each case: what memory is filled with before it is given out and after it was
given back, the order of sets, and whether machine code checks its indices. The second also goes through the cases from
the last to the first."""

_BOTH = {
    "OMP_NUM_THREADS": "1",
    "PYTHONMALLOC": "malloc",  # so that memory of Python's is filled as well
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # and that of Arrow's
    "MALLOC_MMAP_THRESHOLD_": str(1 << 28),  # large arrays too come from memory that is kept, which takes half the time
    "MALLOC_TRIM_THRESHOLD_": str(1 << 28),
}


class _Lane:
    """A worker of one decoder and one of the two runs; it is started when it is asked, and again where it has ended."""

    def __init__(self, decoder: str, run: int, folder: Path) -> None:
        self._decoder, self._run, self._folder = decoder, run, folder
        self._place = folder / f"place-{decoder}-{run}-{threading.get_ident()}"
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, first: int, end: int) -> tuple[dict[str, Any] | None, int, int, str]:
        """Have cases run; return what the worker said, or None with the case and phase at which it ended, and how."""
        process = self._started()
        assert process.stdin is not None
        process.stdin.write(f"{first} {end}\n".encode())
        process.stdin.flush()
        line = self._line(process)
        if line:
            return json.loads(line), 0, 0, ""
        code = process.wait()
        case, phase = PLACE.unpack(self._place.read_bytes())
        self._process = None
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return None, case, phase, how

    def end(self) -> None:
        """End the worker."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._place.write_bytes(PLACE.pack(-1, 0))
            words = [sys.executable, "-m", "tests.differential", "--worker", self._decoder, str(self._place)]
            extra = _BOTH | _RUNS[self._run]
            if "NUMBA_BOUNDSCHECK" in extra:  # what numba keeps does not tell with which setting it was compiled
                extra["NUMBA_CACHE_DIR"] = str(self._folder / "checked")
            self._process = subprocess.Popen(
                words + (["--again"] if self._run else []),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
                env={**os.environ, **extra},
            )
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """Return the answer of a worker; none where it ended, or stands at one case for too long and is ended."""
        assert process.stdout is not None
        held, before, since = b"", b"", time.monotonic()
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ)
            while not held.endswith(b"\n"):
                if waiting.select(5):
                    data = os.read(process.stdout.fileno(), 1 << 20)
                    if not data:
                        return b""
                    held += data
                place = self._place.read_bytes()
                if place != before:
                    before, since = place, time.monotonic()
                elif time.monotonic() - since > _longest_at(before):
                    process.kill()
        return held


def _longest_at(place: bytes) -> float:
    """Return the seconds that a worker may take where it is."""
    case, phase = PLACE.unpack(place)
    if case < 0:
        return math.inf
    return _STUCK_IN_REFERENCE_SECONDS if phase == REFERRING else _STUCK_SECONDS


@dataclass
class Sums:
    """What came of the cases so far, by decoder."""

    tallies: dict[str, Tally] = field(default_factory=dict)

    @property
    def is_wrong(self) -> bool:
        """Return whether anything happened that may not."""
        return any(tally.wrong for tally in self.tallies.values())

    def summary(self, decoders: Sequence[Decoder]) -> str:
        """Return a table for people, and every case that went wrong."""
        lines = [f"{'decoder':<24}{'cases':>9}{'accept':>8}{'refuse':>8}{'stricter':>9}{'excused':>8}" + _WRONG_HEAD]
        for decoder in decoders:
            tally = self.tallies.get(decoder.name)
            if tally is not None:
                lines.append(_row(decoder.name, tally))
        for decoder in decoders:
            tally = self.tallies.get(decoder.name)
            if tally is None:
                continue
            lines += ["", f"{decoder.name}, compared with {decoder.reference}"]
            lines += [f"  {kind:<56}{count:>9}" for kind, count in sorted(tally.damaged.items())]
            lines += [f"  cklog alone refuses: {why:<60}{n:>7}" for why, n in tally.refusals.most_common(8)]
            excuses = {excuse.name: excuse.reason for excuse in decoder.excuses}
            lines += [f"  {k}: {excuses.get(k[9:], '')}" for k in sorted(tally.kinds) if k.startswith("excused: ")]
            for case, kind, detail in sorted(tally.wrong)[:20]:
                lines += [f"  {kind}: --replay {decoder.name}:{case}", *("    " + t for t in detail.splitlines()[-6:])]
        return "\n".join(lines)


_SHORT = ("accepted", "differ", "except", "ended", "runs")
_WRONG_HEAD = "".join(f"{short:>9}" for short in _SHORT) + f"{'a second':>10}"


def _row(name: str, tally: Tally) -> str:
    share = {kind: f"{100 * tally.kinds[kind] / max(tally.cases, 1):.1f}%" for kind in (*AGREE, "cklog alone refuses")}
    excused = sum(count for kind, count in tally.kinds.items() if kind.startswith("excused"))
    wrong = Counter(kind for _, kind, _ in tally.wrong)
    row = f"{name:<24}{tally.cases:>9}{share[AGREE[0]]:>8}{share[AGREE[1]]:>8}"
    row += f"{share['cklog alone refuses']:>9}{excused:>8}" + "".join(f"{wrong[kind]:>9}" for kind in WRONG)
    return row + f"{tally.cases / max(tally.seconds, 1e-9):>10.0f}"


def run(
    decoders: Sequence[Decoder],
    first: int,
    count: int,
    jobs: int,
    told: Callable[[str], None] = lambda line: None,
) -> Sums:
    """Try `count` cases from `first` on with each decoder, `jobs` decoders' chunks at a time."""
    sums, lock = Sums({decoder.name: Tally() for decoder in decoders}), threading.Lock()
    shares = [
        (d, range(first + job * count // jobs, first + (job + 1) * count // jobs))
        for d in decoders
        for job in range(jobs)
    ]
    waiting = iter(shares)

    def work(folder: Path) -> None:
        while True:
            with lock:
                share = next(waiting, None)
            if share is None:
                return
            _run_share(*share, sums, lock, folder, told)

    with tempfile.TemporaryDirectory(prefix="cklog-differential-") as name:
        threads = [threading.Thread(target=work, args=(Path(name),)) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sums


def _run_share(
    decoder: Decoder,
    cases: range,
    sums: Sums,
    lock: threading.Lock,
    folder: Path,
    told: Callable[[str], None],
) -> None:
    """Try a range of cases of one decoder."""
    lanes = [_Lane(decoder.name, run, folder) for run in range(len(_RUNS))]
    began = time.monotonic()
    for first in range(cases.start, cases.stop, _CHUNK):
        end = min(first + _CHUNK, cases.stop)
        tally = _run_chunk(lanes, first, end)
        with lock:
            sums.tallies[decoder.name].add(tally)
            all_of_it = sums.tallies[decoder.name]
        for case, kind, detail in tally.wrong:
            told(f"{decoder.name}:{case}: {kind}: {detail.splitlines()[-1:]}")
        if (end - cases.start) % (_RESTARTED_EVERY * _CHUNK) == 0:
            for lane in lanes:
                lane.end()
            seconds = time.monotonic() - began
            told(f"{decoder.name}: {all_of_it.cases} cases, {len(all_of_it.wrong)} wrong, {seconds:.0f} s")
    for lane in lanes:
        lane.end()


def _run_chunk(lanes: Sequence[_Lane], first: int, end: int) -> Tally:
    """Try cases in both runs; where a worker ends the case it was at is left out of what is compared."""
    tally, began = Tally(), time.monotonic()
    digests: list[dict[int, str]] = [{}, {}]
    for run, lane in enumerate(lanes):
        waiting = [(first, end)]
        while waiting:
            a, b = waiting.pop()
            if a >= b:
                continue
            said, case, phase, how = lane.ask(a, b)
            if said is not None:
                digests[run].update(zip(range(a, b), said["digests"], strict=True))
                if "tally" in said:
                    tally.add(_tally_from(said["tally"]))
                continue
            case = min(max(case, a), b - 1)
            waiting += [(case + 1, b), (a, case)]
            if phase == REFERRING:
                tally.cases += 1
                tally.kinds["the reference ended the process"] += 1
                tally.damaged["the reference ended the process"] += 1
            else:
                tally.wrong.append((case, "process ended", f"run {run}: {how}"))
    for case in sorted(digests[0].keys() & digests[1].keys()):
        if digests[0][case] != digests[1][case]:
            tally.wrong.append((case, "runs differ", f"{digests[0][case]} {digests[1][case]}"))
    tally.seconds = time.monotonic() - began
    return tally


def _tally_from(said: dict[str, Any]) -> Tally:
    return Tally(
        said["cases"],
        Counter(said["kinds"]),
        Counter(said["damaged"]),
        Counter(said["refusals"]),
        [(case, kind, detail) for case, kind, detail in said["wrong"]],
        0.0,
    )
