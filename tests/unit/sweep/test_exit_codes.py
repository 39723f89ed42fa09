"""The exit code of a scan is the worst of its runs, each asked alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from cklog.model.verdict import VERDICTS
from tests.conftest import SAMPLES
from tests.program import cklog


def test_the_exit_code_is_the_worst_that_any_run_has_alone(tmp_path: Path) -> None:
    """5 before 4 before 3 before 0, whichever run comes first."""
    samples = {0: "domino-cycle", 3: "kafka-broker", 4: "meteor-shower", 5: "spark-wordcount"}
    places = {code: shutil.copytree(SAMPLES / name, tmp_path / name) for code, name in samples.items()}
    (tmp_path / "spark-wordcount/ck/offsets/.6.crc").unlink()
    (tmp_path / "spark-wordcount/ck/offsets/6").write_text("v9\n")
    assert {code: cklog("recovery-line", place).code for code, place in places.items()} == {n: n for n in samples}
    for codes in ((0,), (0, 3), (3, 4), (5, 0), (4, 5), (3, 0, 4, 5)):
        ended = cklog("scan", *(places[code] for code in codes), "--json")
        answered = json.loads(ended.out)
        assert (ended.code, answered["verdict"]) == (max(codes), VERDICTS.get(max(codes), "ok"))
        assert sorted(row["exit"] for row in answered["result"]["runs"]) == sorted(codes)
