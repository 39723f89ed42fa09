"""Every folder of the shared cases is asserted by a test: one that names it, or one that is listed here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.integration.evidence.cases import CASES, kept

TESTS = REPOSITORY / "tests"
ELSEWHERE = {
    "mission/auto-needs-java": (
        "unit/engine/test_choosing.py::test_without_java_auto_answers_what_is_above_the_size",
        "its folder has no input",
    ),
    "security/masked-path": (
        "unit/render/test_secrets.py::test_a_line_names_snapshots_as_they_are_called",
        "its folder has no input",
    ),
    "security/numba-config": (
        "integration/hostile/test_compiler_settings.py::test_settings_in_the_working_directory_are_not_read",
        "the settings lie in the working directory, which a test makes",
    ),
    "security/overwrite-evidence": (
        "unit/commands/terminal/test_destination.py::test_output_inside_path_is_refused_in_one_sentence_and_nothing_changes",
        "its folder has no input",
    ),
}
"""Cases that no test names: the test that asserts what the README says, and why it does not read the folder."""


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


@kept
def test_every_case_is_a_test() -> None:
    words = {
        word
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__)
        for word in re.findall(r"[\w-]+", path.read_text())
    }
    folders = {
        f"{group.name}/{case.name}": case.name in words
        for group in CASES.iterdir()
        if group.is_dir()
        for case in group.iterdir()
    }
    assert {name for name, is_named in folders.items() if not is_named} == set(ELSEWHERE)


def test_what_is_listed_is_a_test_with_a_reason() -> None:
    for test, reason in ELSEWHERE.values():
        path, _, name = test.partition("::")
        assert name in functions(TESTS / path)
        assert reason
