"""Files of other projects: each is listed with its package, version, licence and checksum, and is what is listed."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from tests.conftest import REPOSITORY

VENDOR = REPOSITORY / "cklog" / "report" / "assets" / "vendor"
LIST = VENDOR / "bom.cdx.json"
COMPONENTS: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))["components"]
OWN = {"README.md", LIST.name}
LICENCES = {"MIT": "Permission is hereby granted, free of charge, to any person obtaining"}
"""Words of the text of each licence that vendored files may have."""


def _reference(one: dict[str, Any]) -> str:
    return str(one["bom-ref"])


def test_the_list_is_valid_cyclonedx() -> None:
    pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib, which checks the list, is not installed")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(LIST.read_text(encoding="utf-8")) is None


def test_every_vendored_file_is_listed_with_its_checksum() -> None:
    listed = {
        file["name"]: {row["alg"]: row["content"] for row in file["hashes"]}
        for component in COMPONENTS
        for file in component["components"]
    }
    here = {path.relative_to(VENDOR).as_posix(): path for path in VENDOR.rglob("*") if path.is_file()}
    found = {
        name: {"SHA-256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in here.items()
        if name not in OWN
    }
    assert found == listed


@pytest.mark.parametrize("component", COMPONENTS, ids=_reference)
def test_a_vendored_package_has_its_version_and_licence(component: dict[str, Any]) -> None:
    name, version = component["name"], component["version"]
    group = component.get("group", "").replace("@", "%40")
    assert component["purl"] == f"pkg:npm/{f'{group}/' if group else ''}{name}@{version}"
    files = [VENDOR / file["name"] for file in component["components"]]
    scripts = [path for path in files if path.suffix == ".js"]
    assert scripts
    for script in scripts:  # its own first lines say which version it is
        banner = script.read_text(encoding="utf-8")[:300]
        assert re.search(rf"{name.partition('.')[0]} {re.escape(version)}\b", banner, flags=re.IGNORECASE)
    (licence,) = [path for path in files if path.name.endswith(".LICENSE.txt")]
    (identifier,) = [row["license"]["id"] for row in component["licenses"]]
    text = " ".join(licence.read_text(encoding="utf-8").split())
    assert LICENCES[identifier] in text
    assert "Copyright" in text


def test_compressed_scripts_are_vendored_nowhere_else() -> None:
    ours = ("cklog", "commands", "parsers", "docs", "benchmarks", "tests")
    found = {path for folder in ours for path in (REPOSITORY / folder).rglob("*.min.*")}
    fonts = {
        path
        for folder in ours
        for ending in ("woff", "woff2", "ttf", "jar")
        for path in (REPOSITORY / folder).rglob(f"*.{ending}")
    }
    assert [path for path in sorted(found | fonts) if VENDOR not in path.parents] == []
