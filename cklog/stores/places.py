"""URIs of stores as cklog writes them for itself: the number of the store, and the size that a listing told."""

from __future__ import annotations

from typing import NamedTuple

_STORE, _SIZE = "store=", "size="


class Located(NamedTuple):
    """A URI without what cklog added to it: the store's number, and the size of the file, None if nothing told it."""

    uri: str
    store: str
    size: int | None


def located(uri: str) -> Located:
    """Take a URI apart.

    >>> located("s3://b/x?region=y&store=2&size=7")
    Located(uri='s3://b/x?region=y', store='2', size=7)
    """
    bare, _, query = uri.partition("?")
    store, size, rest = "", None, []
    for part in query.split("&") if query else ():
        if part.startswith(_STORE):
            store = part[len(_STORE) :]
        elif part.startswith(_SIZE) and part[len(_SIZE) :].isdigit():
            size = int(part[len(_SIZE) :])
        else:
            rest.append(part)
    return Located(bare + ("?" + "&".join(rest) if rest else ""), store, size)


def numbered(uri: str, store: str, size: int | None = None) -> str:
    """Return a URI that names its store, and the size of its file.

    >>> numbered("s3://b/x", "2", 7), numbered("s3://b/x?region=y", "")
    ('s3://b/x?store=2&size=7', 's3://b/x?region=y')
    """
    added = [f"{_STORE}{store}"] if store else []
    added += [] if size is None else [f"{_SIZE}{size}"]
    return uri + ("&" if "?" in uri else "?") + "&".join(added) if added else uri


def without_size(uri: str) -> str:
    """Return a URI that says no size, for another file of the same store.

    >>> without_size("s3://b/x?store=2&size=7")
    's3://b/x?store=2'
    """
    found = located(uri)
    return numbered(found.uri, found.store)
