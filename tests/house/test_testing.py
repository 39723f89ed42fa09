"""The faults that docs/testing.md explains are ones that `make mutants` makes: in the code as it is today."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conftest import REPOSITORY
from tests.mutants.__main__ import EXPLAINED
from tests.mutants.faults import fault, places, sites


@pytest.mark.slow
def test_each_fault_that_is_explained_can_be_made() -> None:
    rows = re.findall(r"^\| `((?:cklog|parsers)/.*)` \| ", EXPLAINED.read_text().replace("\\|", "|"), re.M)
    explained: dict[str, set[str]] = {}
    for name in rows:
        explained.setdefault(name.partition(" ")[0], set()).add(name)
    assert explained
    for path, names in explained.items():
        text = (REPOSITORY / path).read_text()
        functions = {name.split(" ")[1].removesuffix(":") for name in names}
        of = [place.function for place in places(ast.parse(text))]
        made = {fault(path, text, *site).name for site in sites(text) if of[site[0]] in functions}
        assert names - made == set()
