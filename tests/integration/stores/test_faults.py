"""What a store does not give is `unreadable-file` and exit 5, in bounded time; never damage, never a traceback."""

from __future__ import annotations

import socket
import time
from collections import Counter

import pytest

from tests.conftest import SAMPLES
from tests.integration.stores.server import DAMAGE, SECRET, ObjectStore
from tests.program import cklog

RUNS = [
    "uncoordinated-join",
    "uncoordinated-join-parquet",
    "flink-orders",
    "spark-wordcount",
    "kafka-broker",
    "kafka-streams-state",
    "checkmate-uncoordinated",
    "patent-store",
    "incremental",
    "cec-aggregate",
]
FAULTS = ["403", "404", "500", "cut", "drop"]
PAIRS = [
    pytest.param(run, fault, marks=() if (i + j) % 4 == 0 else pytest.mark.slow)
    for i, run in enumerate(RUNS)
    for j, fault in enumerate(FAULTS)
]
"""Each run, each fault: a quarter of them in every run of the tests, and all of them among the slow ones."""


@pytest.mark.quarter
@pytest.mark.parametrize(("run", "fault"), PAIRS)
def test_files_that_are_not_given_are_unread_and_not_damaged(store: ObjectStore, run: str, fault: str) -> None:
    uri = store.upload(SAMPLES / run, f"faults/{run}")
    store.fault = lambda what, key: fault if what == "GET" else None
    ended = cklog("recovery-line", uri, *store.words, "--store", "timeout=1")
    told = ended.out + ended.err
    assert ended.code == 5, told
    about_files = [line for line in told.splitlines() if "[no-metadata]" not in line]  # which is so of intact ones
    assert not [word for line in about_files for word in DAMAGE if word in line], told
    assert "Traceback" not in told
    assert SECRET not in told
    assert max(Counter(one.key for one in store.asked if one.what == "GET").values()) <= 3 * 3


@pytest.mark.parametrize(("fault", "why"), [("403", "HTTP 403"), ("500", "HTTP 500"), ("cut", "breaks off")])
def test_one_file_that_is_not_given_is_named_with_the_reason(store: ObjectStore, fault: str, why: str) -> None:
    uri = store.upload(SAMPLES / "uncoordinated-join", "one")
    store.fault = lambda what, key: fault if key.endswith("channels/join.jsonl") else None
    ended = cklog("recovery-line", uri, *store.words, "--store", "timeout=1")
    assert ended.code == 5
    [line] = [line for line in (ended.out + ended.err).splitlines() if "unreadable-file" in line]
    assert "channels/join.jsonl" in line
    assert why in line


@pytest.mark.quarter
@pytest.mark.parametrize("fault", ["500", "503", "cut", "drop"])
def test_what_goes_wrong_once_is_tried_again(store: ObjectStore, fault: str) -> None:
    uri = store.upload(SAMPLES / "uncoordinated-join", "again")
    seen = set[str]()

    def first(what: str, key: str) -> str | None:
        if what != "GET" or key in seen:
            return None
        seen.add(key)
        return fault

    store.fault = first
    ended = cklog("recovery-line", uri, *store.words)
    assert (
        ended.out.replace(uri, str(SAMPLES / "uncoordinated-join"))
        == cklog("recovery-line", SAMPLES / "uncoordinated-join").out
    )
    assert seen, "something went wrong"


@pytest.mark.parametrize("what", ["GET", "LIST"])
def test_a_store_that_hangs_is_given_up(store: ObjectStore, what: str) -> None:
    """Spark's checkpoint has a hundred files: each of them a wait of its own would be minutes."""
    uri = store.upload(SAMPLES / "spark-wordcount", "hang")
    store.fault = lambda asked, key: "hang" if asked == what else None
    began = time.monotonic()
    ended = cklog("recovery-line", uri, *store.words, "--store", "timeout=1")
    assert ended.code == (5 if what == "GET" else 66)
    assert time.monotonic() - began < 60, "it hangs for two minutes at each request"
    assert len(ended.err.splitlines()) <= 2 or ended.out


def test_an_object_that_was_overwritten_since_it_was_listed_is_unread(store: ObjectStore) -> None:
    """Its bytes are those of no run that ever was."""
    uri = store.upload(SAMPLES / "uncoordinated-join", "grown")
    name = "grown/channels/join.jsonl"

    def grow(what: str, key: str) -> str | None:
        if what == "GET" and key == name:
            body = (SAMPLES / "uncoordinated-join/channels/join.jsonl").read_bytes()
            store.client.put_object(Bucket="checkpoints", Key=name, Body=body + body)
        return None

    store.fault = grow
    ended = cklog("recovery-line", uri, *store.words)
    assert ended.code == 5
    assert "something writes to it" in ended.out + ended.err


@pytest.mark.parametrize(
    "options", [("--store", "anonymous=true"), ("--store", "access_key=a", "--store", "secret_key=b")]
)
def test_a_store_that_is_not_there_is_one_line_and_exit_66(store: ObjectStore, options: tuple[str, ...]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    ended = cklog("recovery-line", "s3://b/x", "--store", f"endpoint={endpoint}", "--store", "timeout=1", *options)
    assert (ended.code, ended.out) == (66, "")
    assert ended.err.startswith("cklog: s3://b/x: ")
    assert len(ended.err.splitlines()) == 2


def test_a_bucket_that_is_not_there_is_exit_66(store: ObjectStore) -> None:
    ended = cklog("recovery-line", "s3://no-such-bucket/x", *store.words)
    assert ended.code == 66
