"""Two real queries in a chain, killed with SIGKILL; copies of their folders restarted as told; and every row counted.

Each round also puts the first query's checkpoint back to an older one, as from a backup, or asks for an older batch: so
that the second must go back too. Restarts take several files a batch, so that a batch that is planned anew has other
rows than the one of its number had. The same copies with the second query left where it was are the counter-check:
there, rows must come out wrong, or nothing was shown.

    CKLOG_CHAINS=20 python -m pytest -n0 -m slow tests/integration/chains
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cklog.model.question import Question
from cklog.run import Options, open_run
from tests.conftest import sample_script

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ROUNDS = int(os.environ.get("CKLOG_CHAINS", "6"))
FILES = 60
WAIT_S = 600.0


MAKE = sample_script("make_spark_chain")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = MAKE.session(tmp_path_factory.mktemp("scratch"))
    yield made
    made.stop()


def rows(spark: Any, home: Path, job: str) -> Counter[int]:
    """How often each row is in the results of a query, as readers of its log see them."""
    return Counter(row.id for row in spark.read.schema("id LONG").json(str(home / job / "out")).collect())


def wrong(spark: Any, home: Path) -> str:
    """Restart both queries, the first one first, and say what is not there once; "" if all is."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import StreamingQueryException

    for job in MAKE.JOBS:
        try:
            query = MAKE.start(spark, home, job, files=3, once=True)
        except Py4JJavaError as error:
            return f"{job}: {error}"
        try:
            assert query.awaitTermination(WAIT_S)
        except StreamingQueryException as error:
            return f"{job}: {error}"
        finally:
            query.stop()
    every = Counter(range(FILES * MAKE.PER_FILE))
    for job in MAKE.JOBS:
        found = rows(spark, home, job)
        if found != every:
            twice, none = sum((found - every).values()), sum((every - found).values())
            return f"{job}: {twice} rows more than once, {none} never"
    return ""


def put_back(home: Path, to: int) -> None:
    """The first query's checkpoint as it was after a batch, with its sink as it is now."""
    for folder in ("offsets", "commits", "sources/0"):
        for path in (home / "clean/ck" / folder).iterdir():
            number = path.name.removeprefix(".").partition(".")[0]
            if number.isdigit() and int(number) > to:
                path.unlink()


def remove(home: Path, commands: list[str]) -> None:
    """Type the commands that were told, beside the copies."""
    for command in commands:
        subprocess.run(["bash", "-ec", command], cwd=home, check=True)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_chain_restarts_as_told_and_every_row_is_there_once(
    number: int, spark: Any, tally: Counter[str], tmp_path: Path
) -> None:
    chance = random.Random(number)
    home = tmp_path / "home"
    MAKE.write_inputs(home / "clean/in", FILES)
    far = chance.randint(4, 24)
    which, part = chance.choice(MAKE.JOBS), chance.choice(("ck/offsets", "ck/commits", "out/_spark_metadata"))

    def there() -> bool:
        both = all(MAKE.committed(home, job) >= 3 for job in MAKE.JOBS)
        return both and (home / which / part / str(far)).exists()

    MAKE.kill_when(home, there)
    tally["kills"] += 1
    done = MAKE.committed(home, "clean")
    how = ("as it is", "put back", "asked back")[number % 3]
    to = max(done - chance.randint(1, 4), 0)
    if how == "put back":
        put_back(home, to)
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    asked = Question(at=(("query/0", to),)) if how == "asked back" else Question()
    with open_run(str(copy / "clean"), Options()) as run, open_run(str(copy / "enrich"), Options()) as other:
        answer = run.joint_line("clean", {"enrich": other}, asked)
    shutil.rmtree(home)
    shutil.copytree(copy, home)  # the queries name their folders by whole paths
    runs = {row.run: row for row in answer.result.runs}
    remove(home, [row.command for row in runs.values() if row.command])
    went_back = "enrich must go back" in answer.result.details["headline"]
    tally[f"{how}: the second {'goes back' if went_back else 'stays'}"] += 1
    assert wrong(spark, home) == "", [row.chosen for row in answer.result.runs]
    tally["every row once, as told"] += 1
    if went_back:
        shutil.rmtree(home)
        shutil.copytree(copy, home)
        remove(home, [row.command for row in (runs["clean"],) if row.command])
        assert wrong(spark, home) != ""
        tally["with the second left where it was: wrong"] += 1
