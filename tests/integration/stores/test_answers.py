"""What is answered over S3 is what is answered of the same files here, byte for byte but for the place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cklog as library
from tests.conftest import REPOSITORY, SAMPLES
from tests.integration.stores.server import KEYS, SECRET, ObjectStore
from tests.program import cklog

ASKED = {
    "uncoordinated-join": ("recovery-line",),
    "uncoordinated-join-parquet": ("recovery-line",),
    "raw-events": ("recovery-line",),
    "flink-orders": ("recovery-line",),
    "spark-wordcount": ("recovery-line",),
    "spark-state-rocksdb": ("inspect",),
    "kafka-broker": ("recovery-line",),
    "kafka-streams-state": ("recovery-line",),
    "checkmate-uncoordinated": ("recovery-line",),
    "patent-store": ("chain",),
    "incremental": ("chain",),
    "cec-aggregate": ("extent", "--operator", "agg1"),
    "cec-aggregate-parquet": ("extent", "--operator", "agg1"),
    "cec-aggregate-kafka": ("extent", "--operator", "agg1"),
    "cec-crashed": ("eventual-checkpoint", "--operator", "agg1"),
}


def without_mv(text: str) -> str:
    """The words for a store, where no command of a shell moves a folder."""
    return re.sub('put it back first, with test .* mv -- [^"\n]*', "put its files back at the stored path first", text)


@pytest.mark.quarter
@pytest.mark.parametrize("sample", ASKED)
@pytest.mark.parametrize("form", [pytest.param("table", marks=pytest.mark.slow), "json"])
def test_an_answer_is_the_same_over_s3(store: ObjectStore, sample: str, form: str) -> None:
    folder = SAMPLES / sample
    uri = store.upload(folder, f"answers/{sample}")
    here = cklog(ASKED[sample][0], folder, *ASKED[sample][1:], "--format", form)
    there = cklog(ASKED[sample][0], uri, *ASKED[sample][1:], "--format", form, *store.words)
    assert (there.code, there.out.replace(uri, str(folder))) == (here.code, without_mv(here.out))
    assert here.code in (0, 3, 4, 5)
    assert store.count("GET") > 0, "it was read there"


def test_a_scan_of_many_runs_is_the_same(store: ObjectStore, tmp_path: Path) -> None:
    """Processes of their own ask there, which are given the options."""
    for sample in ("uncoordinated-join", "flink-orders", "spark-wordcount", "kafka-broker"):
        shutil.copytree(SAMPLES / sample, tmp_path / sample)
        uri = store.upload(SAMPLES / sample, f"many/{sample}").rpartition("/")[0]
    here = cklog("scan", tmp_path, "--format", "csv")
    there = cklog("scan", uri, "--format", "csv", *store.words)
    assert (there.code, there.out.replace(uri, str(tmp_path))) == (here.code, here.out)
    assert len(there.out.splitlines()) > 4


def test_the_environment_says_how_a_store_is_reached(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = store.upload(SAMPLES / "domino-cycle", "environment")
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert cklog("recovery-line", uri).out == cklog("recovery-line", SAMPLES / "domino-cycle").out


def test_a_profile_says_it(store: ObjectStore, tmp_path: Path) -> None:
    uri = store.upload(SAMPLES / "domino-cycle", "profile")
    (tmp_path / ".aws").mkdir()
    keys = f"aws_access_key_id = a\naws_secret_access_key = {SECRET}\n"
    (tmp_path / ".aws" / "credentials").write_text(f"[incident]\n{keys}")
    (tmp_path / ".aws" / "config").write_text(f"[profile incident]\nregion = x\nendpoint_url = {store.endpoint}\n")
    assert cklog("recovery-line", uri, "--store", "profile=incident").code == 0


def test_nobody_in_particular_may_read_too(store: ObjectStore) -> None:
    uri = store.upload(SAMPLES / "domino-cycle", "anonymous", ACL="public-read")
    options = ("--store", f"endpoint={store.endpoint}", "--store", "anonymous=true")
    assert cklog("recovery-line", uri, *options).code == 0


def test_a_program_reads_two_stores_at_once(store: ObjectStore) -> None:
    """Options belong to what was opened with them, and not to the process."""
    uri = store.upload(SAMPLES / "domino-cycle", "library")
    nobody = {**store.options, "endpoint": "http://127.0.0.1:9", "timeout": "0.5"}
    with library.open(uri, store=store.options) as run, library.open(uri, store=nobody) as other:
        with pytest.raises(library.CklogError):
            other.recovery_line()
        assert run.recovery_line().to_json() == library.open(SAMPLES / "domino-cycle").recovery_line().to_json()


@pytest.mark.quarter
@pytest.mark.parametrize(
    "command",
    [
        ("recovery-line", "-v"),
        ("inspect", "--json"),
        ("runbook", "--format", "script"),
        ("runbook", "--format", "md"),
        ("report", "--format", "md"),
        ("retention", "--format", "script"),
        ("recovery-line", "--run", "nobody"),
        ("recovery-line", "--from", "flink", "-v"),
        ("extent", "--operator", "nobody", "--json"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("fault", ["", "403", "500"])
def test_credentials_are_never_printed(store: ObjectStore, command: tuple[str, ...], fault: str) -> None:
    uri = store.upload(SAMPLES / "uncoordinated-join", "secret")
    store.fault = lambda what, key: fault if fault and what == "GET" else None
    ended = cklog(
        command[0], uri, *command[1:], *store.words, "--store", "session_token=FwoGZXIvYXdz", "--store", "timeout=1"
    )
    for secret in (SECRET, KEYS["access_key"], "FwoGZXIvYXdz"):
        assert secret not in ended.out + ended.err
    assert not re.search(r"[?&](store|size)=", ended.out + ended.err), "nor what cklog adds to URIs"
    assert ended.code in (0, 3, 4, 5, 66)


def test_a_command_that_is_printed_reaches_the_store_again(store: ObjectStore) -> None:
    """All but the credentials, which the environment has to hold."""
    uri = store.upload(SAMPLES / "uncoordinated-join", "again")
    printed = cklog("runbook", uri, "--format", "md", *store.words).out
    assert f"--store=endpoint={store.endpoint} --store=region=us-east-1" in printed


@pytest.mark.slow
@pytest.mark.spark
def test_executors_read_with_the_same_options(store: ObjectStore, tmp_path: Path) -> None:
    """In a process of its own, whose environment says nothing of the store."""
    uri = store.upload(SAMPLES / "uncoordinated-join-parquet", "executors")
    asked = ["recovery-line", uri, *store.words, "--engine", "spark", "-q", "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "cklog", *asked], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )
    here = cklog("recovery-line", SAMPLES / "uncoordinated-join-parquet", "--json")
    assert (ended.returncode, ended.stdout) == (here.code, here.out), ended.stderr
