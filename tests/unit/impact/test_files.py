"""The run folder of a simulated crash: what is announced from its files, by scans, holds for what really happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from cklog.impact.answer import ImpactQuestion
from cklog.impact.model import Impact
from cklog.run import Options, open_run
from cklog.simulate.odysseus.files import write
from tests.property.impact.test_phases import Case, cases, check_announced, check_counts


def impact_of(folder: Path, split_bytes: int = 1 << 20, **asked: Any) -> Impact:
    """What `cklog impact` answers on a folder."""
    with open_run(str(folder), Options(engine="local", split_bytes=split_bytes)) as run:
        found: Impact = run.impact(ImpactQuestion(**asked)).result
    return found


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases())
def test_what_is_announced_from_files_holds(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    folder = tmp_path_factory.mktemp("run") / "run"
    how = case.crashed.how
    if how.checkpoint == 0:
        return  # there is no checkpoint record of the initial state
    write(folder, case.crashed, None, how.checkpoint)
    found = impact_of(folder, 200, recovery=how.recovery)
    check_announced(Case(case.crashed, found.outputs))
    check_counts(Case(case.crashed, found.outputs))
    if how.recovery in ("stateless-rollback", "rollback"):
        ends = {e.source: e.time for e in case.crashed.elements}  # the log tells nothing of what comes behind
        last = min(ends.values())
        for told, known in zip(found.outputs, case.impacts, strict=True):
            assert how.crash >= last or told.doubled == known.doubled
            if known.convergence == "finite":
                assert told.convergence in ("finite", "unknown")
