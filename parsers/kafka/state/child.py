"""Read column families of RocksDB folders, as a process of its own: a library may end its process over bad files.

Its arguments are budgets: the bytes of memory that it may take, and of a column family the most pairs that are told and
the most bytes of a value. A line of the input is the JSON of [folder, column family]; a line of the output is that of
{"pairs": [[key, value]…]} in hexadecimal digits, or {"error": why}. Nothing of cklog is imported, so that it starts
fast.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

OPEN_FILES = 64
"""Tables that are open at a time: others are opened when they are needed, and mostly never are."""


def pairs_of(folder: str, family: str, most: int, value_bytes: int) -> list[tuple[str, str]]:
    """Return the pairs of a column family, which must be there; the folder is written to."""
    rocksdict: Any = __import__("rocksdict")
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(False)
    options.set_max_open_files(OPEN_FILES)
    wanted = {"default": options, family: options}
    database = rocksdict.Rdict(
        folder, options=options, column_families=wanted, access_type=rocksdict.AccessType.read_only(False)
    )
    found: list[tuple[str, str]] = []
    try:
        for key, value in database.get_column_family(family).items():
            if len(found) >= most:
                raise ValueError(f"more than {most} pairs in {family}")
            if len(value) <= value_bytes:
                found.append((key.hex(), value.hex()))
    finally:
        database.close()
    return found


def main() -> None:
    """Answer each line of the input."""
    memory, most, value_bytes = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for line in sys.stdin:
        folder, family = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"pairs": pairs_of(folder, family, most, value_bytes)}
        except BaseException as error:  # Rust's panics are no Exception
            answer = {"error": str(error) or type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
