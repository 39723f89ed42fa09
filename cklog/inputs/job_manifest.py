"""What people say of a job in a `job.json` in its folder, whatever the format of the rest."""

from __future__ import annotations

import json
from typing import Any

from cklog.budgets import check_json, reading
from cklog.errors import CorruptInput
from cklog.inputs.member_names import damaged_name, find_misspelling
from cklog.local_files import joined
from cklog.storage import Root

_MANIFEST = "job.json"
_MEMBERS = ("outputs", "sinks")


def manifest_path(root: Root) -> str | None:
    """Return where a job's manifest lies: in its root, or in the one folder just below it that has one."""
    found = [entry.path for entry in root.list() if entry.path.rpartition("/")[2] == _MANIFEST]
    below = [path for path in found if path.count("/") == 1]
    return _MANIFEST if _MANIFEST in found else below[0] if len(below) == 1 else None


def manifest_of(root: Root) -> dict[str, Any]:
    """Return what a job's manifest says, {} if there is none.

    Raises
    ------
    CorruptInput : it is no JSON object, or the name of what it says a job writes is damaged or misspelt
    OverBudget : it is larger than any manifest
    """
    path = manifest_path(root)
    if path is None:
        return {}
    data = root.read(path)
    with reading(path):
        check_json(data)
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        manifest = None
    why = (
        damaged_name(manifest, _MEMBERS) or find_misspelling(manifest, _MEMBERS)
        if isinstance(manifest, dict)
        else "no JSON object"
    )
    if why:
        raise CorruptInput(f"{joined(root.path, path)}: {why}", "mend it, or take it away")
    return dict(manifest)


def declared_sinks(root: Root) -> tuple[str, ...]:
    """Return the tables that a manifest says the job writes to, as `[NAME=]URI`; a relative path begins beside it.

    Raises
    ------
    CorruptInput : `sinks` is neither an object of names and URIs nor a list of URIs
    """
    said = manifest_of(root).get("sinks", [])
    pairs = [("", one) for one in said] if isinstance(said, list) else [*said.items()] if isinstance(said, dict) else []
    path = manifest_path(root) or _MANIFEST
    if not isinstance(said, (list, dict)) or not all(isinstance(uri, str) and uri for _, uri in pairs):
        raise CorruptInput(
            f"{joined(root.path, path)}: sinks must be an object of names and URIs, or a list of URIs",
            "see docs/sink-tables.md",
        )
    folder = joined(root.path, path.rpartition("/")[0])
    return tuple(f"{name}={_placed(folder, uri)}" if name else _placed(folder, uri) for name, uri in pairs)


def _placed(folder: str, uri: str) -> str:
    return uri if ":" in uri.partition("/")[0] else joined(folder, uri)
