"""The run folder of a simulated crash: what is announced from its files, by scans, holds for what really happened."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from cklog.impact.model import Count
from cklog.simulate.odysseus.files import write
from tests.examples import examples
from tests.oracles.impact import Case, cases, check_announced, check_counts
from tests.reading.impact import impact_of


def no_vaguer(told: Count, known: Count) -> bool:
    """Whether the files say as much of a count as the elements alone, or more."""
    return told.least >= known.least and (known.most is None or (told.most is not None and told.most <= known.most))


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
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
            assert how.crash >= last or no_vaguer(told.doubled, known.doubled)
            if known.convergence == "finite":
                assert told.convergence in ("finite", "unknown")
