"""What people say of a job in a `job.json` in its folder, whatever the format of the rest."""

from __future__ import annotations

import json
import posixpath
from typing import Any

from cklog.errors import CorruptInput
from cklog.storage import Root

_MANIFEST = "job.json"


def manifest_of(root: Root) -> dict[str, Any]:
    """Return what a job's manifest says, {} if there is none.

    Raises
    ------
    CorruptInput : it is no JSON object
    """
    if not any(entry.path == _MANIFEST for entry in root.list()):
        return {}
    try:
        manifest = json.loads(root.read(_MANIFEST))
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise CorruptInput(f"{root.path}/{_MANIFEST}: no JSON object", "mend it, or take it away")
    return manifest


def declared_sinks(root: Root) -> tuple[str, ...]:
    """Return the tables that a manifest says the job writes to, as `[NAME=]URI`; a relative path begins at its folder.

    Raises
    ------
    CorruptInput : `sinks` is neither an object of names and URIs nor a list of URIs
    """
    said = manifest_of(root).get("sinks", [])
    pairs = [("", one) for one in said] if isinstance(said, list) else [*said.items()] if isinstance(said, dict) else []
    if not isinstance(said, (list, dict)) or not all(isinstance(uri, str) and uri for _, uri in pairs):
        raise CorruptInput(
            f"{root.path}/{_MANIFEST}: sinks must be an object of names and URIs, or a list of URIs",
            "see docs/sink-tables.md",
        )
    return tuple(f"{name}={_placed(root, uri)}" if name else _placed(root, uri) for name, uri in pairs)


def _placed(root: Root, uri: str) -> str:
    return uri if ":" in uri.partition("/")[0] else posixpath.join(root.path, uri)
