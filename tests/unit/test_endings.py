"""What is put away at the end: each thing that was said and not taken back, whatever the others do."""

from __future__ import annotations

import pytest

from cklog import endings


@pytest.fixture(autouse=True)
def _nothing_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process have things that are to stay, such as Spark's."""
    monkeypatch.setattr(endings, "_tidying", [])


def test_what_is_taken_back_is_not_put_away() -> None:
    told: list[str] = []
    take_back = endings.tidy_at_end(lambda: told.append("tidy"))
    endings.tidy_now()
    take_back()
    take_back()
    endings.tidy_now()
    assert told == ["tidy"]


def test_one_that_fails_keeps_nobody_from_it() -> None:
    told: list[str] = []

    def fail() -> None:
        raise OSError

    with endings.tidied_at_end(fail), endings.tidied_at_end(lambda: told.append("tidy")):
        endings.tidy_now()
    endings.tidy_now()
    assert told == ["tidy"]
