"""Damages to what a killed query left: one file, a pair of files or a folder, as disks, people and copies do it."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

Change = Callable[[Path, random.Random], None]


def _sidecar(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _delete(path: Path, chance: random.Random) -> None:
    path.unlink()
    _sidecar(path).unlink(missing_ok=True)


def _delete_alone(path: Path, chance: random.Random) -> None:
    path.unlink()


def _delete_sidecar(path: Path, chance: random.Random) -> None:
    _sidecar(path).unlink(missing_ok=True)


def _without_sidecar(change: Callable[[bytes, random.Random], bytes], keep: bool) -> Change:
    def damage(path: Path, chance: random.Random) -> None:
        path.write_bytes(change(path.read_bytes(), chance))
        if not keep:  # as on an object store
            _sidecar(path).unlink(missing_ok=True)

    return damage


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))] if data else data


def _empty(data: bytes, chance: random.Random) -> bytes:
    return b""


def _zero(data: bytes, chance: random.Random) -> bytes:
    return bytes(len(data))


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


CHANGES: dict[str, Change] = {
    "deleted": _delete,
    "deleted, its checksum left": _delete_alone,
    "its checksum deleted": _delete_sidecar,
    "cut": _without_sidecar(_cut, keep=True),
    "cut, no checksum": _without_sidecar(_cut, keep=False),
    "emptied": _without_sidecar(_empty, keep=True),
    "emptied, no checksum": _without_sidecar(_empty, keep=False),
    "zeroed": _without_sidecar(_zero, keep=True),
    "zeroed, no checksum": _without_sidecar(_zero, keep=False),
    "a bit flipped": _without_sidecar(_flip, keep=True),
}
"""What may happen to one file. A flipped bit keeps the checksum: without one, some bits prove nothing."""

PLACES: dict[str, str] = {
    "plan": r"ck/offsets/\d+",
    "commit": r"ck/commits/\d+",
    "id": r"ck/metadata",
    "source": r"ck/sources/.*/\d+(\.compact)?",
    "state": r"ck/state/.*\.(delta|snapshot|changelog|zip|sst)",
    "state's metadata": r"ck/state/.*/_(metadata|stateSchema)/.*",
    "sink's log": r"out/_spark_metadata/\d+(\.compact)?",
    "result": r"out/(k=\w+/)?part-.*",
    "input": r"in2?/f\d+\.json",
}
"""The files that a query leaves, by what they are."""
_WEIGHTS = {"state": 4, "plan": 3, "commit": 3, "source": 2, "sink's log": 3, "input": 1, "result": 1, "id": 1}
_ONLY_DELETED = ("input", "result")


def files_of(home: Path) -> dict[str, list[Path]]:
    """Return the files below a folder by place, oldest first: by the number in the name, then by the name."""
    found: dict[str, list[Path]] = {}
    every = sorted(home.rglob("*"), key=lambda path: (_number(path), str(path)))
    for path in every:
        named = str(path.relative_to(home))
        if path.is_file() and not path.name.startswith("."):
            place = next((place for place, form in PLACES.items() if re.fullmatch(form, named)), None)
            if place is not None:
                found.setdefault(place, []).append(path)
    return found


def _number(path: Path) -> int:
    found = re.match(r"\d+", path.name)
    return int(found[0]) if found else -1


def _one(paths: list[Path], chance: random.Random) -> Path:
    """The newest file most often, then the ones before it, then any."""
    return paths[-min(len(paths), 1 + int(chance.expovariate(0.7)))] if chance.random() < 0.8 else chance.choice(paths)


def damage(home: Path, chance: random.Random, read: list[Path], earlier: list[Path]) -> str:
    """Damage a folder and return what was done.

    Of the input, only files that were `read` are taken; `earlier` are images of the folder before.
    """
    if earlier and chance.random() < 0.12:
        return _from_earlier(home, chance.choice(earlier), chance)
    found = files_of(home)
    found["input"] = [path for path in read if path.exists()]
    found = {place: paths for place, paths in found.items() if paths}
    if chance.random() < 0.2:
        return _of_folders(home, found, chance)
    done = []
    for _ in range(1 if chance.random() < 0.75 else 2):
        place = chance.choices(list(found), [_WEIGHTS.get(place, 1) for place in found])[0]
        paths = [path for path in found[place] if path.exists()]
        if not paths:
            continue
        path = _one(paths, chance)
        change = "deleted" if place in _ONLY_DELETED else chance.choice(list(CHANGES))
        CHANGES[change](path, chance)
        done.append(f"{path.relative_to(home)} {change}")
    return "; ".join(done)


def _of_folders(home: Path, found: dict[str, list[Path]], chance: random.Random) -> str:
    """Damage that is not of one file: folders gone, logs that lose an end, copies, left-overs, older files put back."""
    logs = [place for place in ("plan", "commit", "source", "sink's log") if len(found.get(place, ())) > 1]
    what = chance.choice(["folder", "newest", "oldest", "left over", "copied", "stale checksum"])
    if what == "folder":
        folders = sorted({path.parent for place, paths in found.items() if place != "input" for path in paths})
        gone = chance.choice([folder for folder in folders if folder != home / "out"])
        shutil.rmtree(gone)
        return f"{gone.relative_to(home)}/ deleted"
    if what == "copied":
        shutil.copytree(home / "ck", home / "ck-copy", copy_function=shutil.copy2)
        return "ck/ copied to ck-copy/"
    paths = found[chance.choice(logs)] if logs else found["id"]
    newest = paths[-1]
    if what in ("newest", "oldest"):
        several = paths[-chance.choice((1, 2)) :] if what == "newest" else paths[:1]
        for path in several:
            _delete(path, chance)
        return "; ".join(f"{path.relative_to(home)} deleted" for path in several)
    if what == "left over":
        shutil.copy2(newest, newest.with_name(f".{newest.name}.0b6c5f4e-0c1f-4b8e-9d53-6a4d0f0e7f10.tmp"))
        return f"{newest.relative_to(home)} has a temporary copy"
    following = newest.with_name(str(_number(newest) + 1))
    if _sidecar(newest).exists():
        shutil.copy2(_sidecar(newest), _sidecar(following))
    return f"{_sidecar(following).relative_to(home)} left over"


def _from_earlier(home: Path, image: Path, chance: random.Random) -> str:
    """A folder as it was before: an old backup of the checkpoint, or a copy that was made while the query ran."""
    folders = ["ck", "ck", "ck/offsets", "ck/commits", "ck/sources", "ck/state"]
    if (home / "out/_spark_metadata").exists():  # what another sink loses, no file shows
        folders.append("out")
    name = chance.choice([name for name in folders if (home / name).exists() and (image / name).exists()])
    shutil.rmtree(home / name)
    shutil.copytree(image / name, home / name, copy_function=shutil.copy2)
    return f"{name}/ replaced by an older copy of it"
