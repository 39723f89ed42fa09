"""Some hundred cases of each decoder, and the harness itself: it notices a decoder that accepts more or is wrong."""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from cklog.arrays.blocks import Blocks
from cklog.arrays.loops import Loop
from cklog.arrays.types import Ints
from tests.conftest import REPOSITORY
from tests.differential import campaign, worker
from tests.differential.decoders import DECODERS, decoder_of, parquet_folded
from tests.differential.mutations import ALL, Damage
from tests.differential.verdicts import Decoder, Outcome
from tests.loop_forms import forced

CASES = 120
FEWER = {"parquet-": 40, "kafka-batches-at-once": 20, "json-lines": 50, "flink-metadata": 60}
NAMES = [decoder.name for decoder in DECODERS if decoder.asked_always]
"""Not RocksDB, which may end the process that asks it."""


@pytest.fixture(scope="module", autouse=True)
def _machine_code() -> Iterator[None]:
    for _ in forced("compiled"):
        yield


def cases_of(name: str) -> range:
    return range(next((count for front, count in FEWER.items() if name.startswith(front)), CASES))


@pytest.mark.parametrize("name", NAMES)
def test_decoders_agree_and_repeat_themselves(name: str) -> None:
    """Both accept some inputs and both refuse some, so that neither share is empty; and two runs are one."""
    decoder, cases = decoder_of(name), cases_of(name)
    tally, digests = worker.tally_of(decoder, cases)
    assert tally.wrong == []
    assert tally.kinds["both accept"] >= len(cases) // 10, tally.kinds
    assert len(cases) - tally.kinds["both accept"] >= len(cases) // 10, tally.kinds
    assert worker.again(decoder, cases) == digests


def _lenient(decoder: Decoder) -> Decoder:
    """Return a decoder that has a value where the true one refuses."""

    def read(data: bytes) -> Outcome:
        found = decoder.read(data)
        return found if found.how == "value" else Outcome("value", [("planted", 0)])

    return dataclasses.replace(decoder, read=read)


def _wrong(decoder: Decoder) -> Decoder:
    """Return a decoder that says something else of every input."""

    def read(data: bytes) -> Outcome:
        found = decoder.read(data)
        return found if found.how != "value" else Outcome("value", [("planted", 0)])

    return dataclasses.replace(decoder, read=read)


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_noticed(name: str) -> None:
    decoder, cases = decoder_of(name), cases_of(name)[:40]
    accepted = worker.tally_of(dataclasses.replace(_lenient(decoder), excuses=()), cases)[0]
    assert {kind for _, kind, _ in accepted.wrong} & {"accepted though refused", "different values"}
    differ = worker.tally_of(dataclasses.replace(_wrong(decoder), excuses=()), cases)[0]
    assert "different values" in {kind for _, kind, _ in differ.wrong}


def test_a_fault_of_folding_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One number of the rows that are folded is wrong, and no number of those that come as batches."""
    faults: list[int] = []

    def add_one(found: Blocks, loop: Loop, names: Sequence[str], state: tuple[Ints, ...]) -> bool:
        if not fold(found, loop, names, state):
            return False
        if found.columns[names[0]].texts is None:
            state[0][0] += 1
            faults.append(1)
        return True

    fold = Blocks.fold
    monkeypatch.setattr(Blocks, "fold", add_one)
    monkeypatch.setattr(parquet_folded, "_INTERPRETED", 1)
    tally, _ = worker.tally_of(decoder_of("parquet-folded-snappy"), range(150))
    assert len(faults) > 5
    assert {kind for _, kind, _ in tally.wrong} == {"exception"}  # the interpreter reads otherwise
    monkeypatch.setattr(parquet_folded, "_interpreted", parquet_folded._folded)
    tally, _ = worker.tally_of(decoder_of("parquet-folded-snappy"), range(150))
    assert {kind for _, kind, _ in tally.wrong} == {"different values"}


def test_runs_that_differ_and_exceptions_are_noticed() -> None:
    """A fault that only one of the two runs has is told, and one that raises."""
    decoder = decoder_of("hadoop-sums")
    states = iter(range(10_000))
    unsteady = dataclasses.replace(decoder, read=lambda data: Outcome("value", next(states)))
    assert worker.again(unsteady, range(4)) != worker.again(unsteady, range(4))

    def fail(data: bytes) -> Outcome:
        raise IndexError("out of bounds")

    verdict, _, _ = worker.try_case(dataclasses.replace(decoder, read=fail), 0)
    assert (verdict.kind, "IndexError" in verdict.detail) == ("exception", True)


def test_every_mutation_changes_something_and_takes_any_bytes() -> None:
    for mutation in {*ALL}:
        found = {mutation(b"\x01\x02\x03\x04some bytes", random.Random(seed)) for seed in range(30)}
        assert len(found) > 5
        for size in (1, 2, 3):
            assert isinstance(mutation(bytes(size), random.Random(size)), bytes)


_BYTES = """
import hashlib
from tests.differential.decoders import DECODERS
from tests.differential.worker import case_of
for one in DECODERS:
    print(one.name, hashlib.sha256(b"".join(case_of(one, case)[0] for case in range(30))).hexdigest())
"""


@pytest.mark.slow
def test_a_case_is_the_same_bytes_in_each_process() -> None:
    """The two runs of a campaign have sets in different orders."""
    found = [
        subprocess.run(
            [sys.executable, "-c", _BYTES],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert found[0] == found[1]


def test_damage_says_what_it_did() -> None:
    kinds = {Damage(random.Random(seed)).kind for seed in range(50)}
    assert kinds == {"none", "inside", "outside"}


@pytest.mark.slow
def test_the_command_itself() -> None:
    words = [sys.executable, "-m", "tests.differential", "--count", "12", "--decoder", "sst-files"]
    ended = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[1].split()[:2] == ["sst-files", "12"]


def test_a_worker_that_ends_is_a_violation_and_the_others_go_on() -> None:
    """A lane whose worker is ended in the middle."""
    asked: list[tuple[int, int]] = []

    class Lane:
        def ask(self, first: int, end: int) -> tuple[dict[str, object] | None, int, int, str]:
            asked.append((first, end))
            if first <= 3 < end:
                return None, 3, worker.READING, "SIGSEGV"
            tally = {"cases": end - first, "kinds": {}, "damaged": {}, "refusals": {}, "wrong": []}
            return {"tally": tally, "digests": ["x"] * (end - first)}, 0, 0, ""

    tally = campaign._run_chunk([Lane(), Lane()], 0, 8)  # type: ignore[list-item]
    assert [(case, kind) for case, kind, _ in tally.wrong] == [(3, "process ended")] * 2
    assert asked[:3] == [(0, 8), (0, 3), (4, 8)]
