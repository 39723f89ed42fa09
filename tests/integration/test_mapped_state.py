"""State files where a map leads: there, gone, or not looked at, which is never the one or the other."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cklog.local_files import NoFile
from cklog.parsers.native.parser import Native
from cklog.storage import Root
from cklog.stores.opening import open_file
from tests.program import cklog
from tests.users import open_to_all, somebody_else


def asked(home: Path, *uris: str) -> tuple[int, dict[str, Any], set[str]]:
    """The exit code, the line and the ids of findings of a run whose state lies in `out`."""
    (home / "run" / "checkpoints").mkdir(parents=True, exist_ok=True)
    rows = [
        {"operator": "a", "subtask": 0, "checkpoint": i, "uri": uri, "sent": {}, "received": {}}
        for i, uri in enumerate(uris, 1)
    ]
    (home / "run" / "checkpoints" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with somebody_else():
        ran = cklog("recovery-line", home / "run", "--map", f"/srv/ck={home / 'out'}", "--json")
    told = json.loads(ran.out)
    return ran.code, told["result"]["line"][0], {finding["id"] for finding in told["findings"]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "out" / "d").mkdir(parents=True)
    for number in (1, 2):
        (tmp_path / "out" / "d" / str(number)).write_text("state")
    open_to_all(tmp_path)
    cklog("inspect", tmp_path)  # what reads is loaded before the user changes
    asked(tmp_path, "/srv/ck/d/1")
    return tmp_path


def test_a_folder_is_there(home: Path) -> None:
    code, line, ids = asked(home, "/srv/ck/d/1", "/srv/ck/d")
    assert (code, line["checkpoint"], ids) == (0, 2, set())


@pytest.mark.parametrize("name", ["d/2", "n" * 300])
def test_what_may_not_be_looked_at_is_unread_and_costs_no_checkpoint(name: str, home: Path) -> None:
    (home / "out" / "d").chmod(0)
    code, line, ids = asked(home, "/srv/ck/gone", f"/srv/ck/{name}")
    (home / "out" / "d").chmod(0o755)
    assert (code, line["checkpoint"], "unreadable-file" in ids) == (5, 2, True)


def test_a_link_out_of_the_place_was_not_looked_at(home: Path) -> None:
    (home / "out" / "d" / "3").symlink_to("/")
    parser = Native(Root(str(home / "run"), (("/srv/ck", str(home / "out")),)))
    assert [parser.is_stored(f"/srv/ck/d/{name}") for name in ("1", "3", "4")] == [True, None, False]


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """Opening one waits for somebody who writes to it, who may never come."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NoFile):
        open_file(str(tmp_path / "pipe"))
