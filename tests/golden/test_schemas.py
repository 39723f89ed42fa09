"""Every answer keeps to the JSON Schema of its command, which is part of the package."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cklog.render.view import VIEWS
from tests.builders.json_schemas import RESULTS, schema_of
from tests.conftest import REPOSITORY
from tests.golden.cases import CASES
from tests.program import cklog

SCHEMAS = files("cklog") / "schemas"


def stored(command: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))
    return found


def as_json(case: str) -> list[str]:
    """The same question, to be answered as JSON."""
    words = CASES[case].split()
    if "--format" in words:
        at = words.index("--format")
        del words[at : at + 2]
    if "--width" in words:
        at = words.index("--width")
        del words[at : at + 2]
    return [*(word for word in words if word not in ("--json", "--fold")), "--json"]


def test_every_answer_has_a_schema() -> None:
    assert set(RESULTS) == set(VIEWS)
    kept = {path.name for path in SCHEMAS.iterdir() if path.name.endswith(".json")}
    assert kept == {f"{command}.json" for command in RESULTS}


@pytest.mark.parametrize("command", RESULTS)
def test_the_schemas_say_what_the_types_say(command: str, request: pytest.FixtureRequest) -> None:
    made = json.dumps(schema_of(command), indent=1, ensure_ascii=False) + "\n"
    if request.config.getoption("--refresh-golden"):
        (REPOSITORY / "cklog" / "schemas" / f"{command}.json").write_text(made, encoding="utf-8", newline="\n")
    assert (SCHEMAS / f"{command}.json").read_text(encoding="utf-8") == made
    jsonschema.Draft202012Validator.check_schema(stored(command))


@pytest.mark.quarter
@pytest.mark.parametrize("case", CASES)
def test_every_golden_answer_keeps_to_its_schema(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(REPOSITORY)
    told = json.loads(cklog(*as_json(case)).out)
    command = told["schema"].removeprefix("cklog.").removesuffix("/1")
    jsonschema.validate(told, stored(command), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("command", "spoil"),
    [
        ("recovery-line", lambda told: told["result"]["line"][0].pop("checkpoint")),
        ("recovery-line", lambda told: told["result"].update(protocol="hopeful")),
        ("recovery-line", lambda told: told["findings"].append({"id": 7})),
        ("z-cycles", lambda told: told["result"].update(checkpoints="many")),
    ],
)
def test_an_answer_that_lacks_something_does_not(command: str, spoil: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    told = json.loads(cklog(command, "sample_logs/domino-cycle", "--json").out)
    jsonschema.validate(told, stored(command))
    spoil(told)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(told, stored(command))
