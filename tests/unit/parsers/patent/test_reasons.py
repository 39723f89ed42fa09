"""What LevelDB says of a store, in one line and without the place of the copy that it was read from."""

from __future__ import annotations

import pytest

from cklog.parsers.patent.leveldb import _reason_of


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(b"Corruption: /a/copy/000005.ldb: bad block"), "Corruption: 000005.ldb: bad block"),
        (OSError("Corruption: /a/copy is no database"), "Corruption: the store is no database"),
        (ValueError(b"first line\nsecond line\nthird"), "first line"),
        (ValueError(b"what it says", b"more of it"), "what it says"),
        (ValueError(), "no reason given"),
        (ValueError(b""), "no reason given"),
        (ValueError(b"bytes \xff"), "bytes \\xff"),
    ],
)
def test_a_reason_is_the_first_line_of_what_leveldb_says(error: Exception, told: str) -> None:
    assert _reason_of(error, "/a/copy") == told
