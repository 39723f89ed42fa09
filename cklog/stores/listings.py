"""What lies below a place in S3: pages of names, checked one by one, and the files and folders that they make.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote_plus

from cklog.budgets import budgets, over
from cklog.stores.deadlines import Deadline
from cklog.stores.patience import NotServed

PAGE_NAMES, PAGE_BYTES = 1000, 8 << 20
"""Names that a page has at the most, and bytes: a name has up to 1,024, each of them three when it is escaped."""

_NAME_BYTES, _TOKEN_BYTES, _DEEP = 1024, 8192, 6
_SPARE_PAGES, _LEAST_NAMES = 100, 100
"""Pages may be nearly empty where many objects were deleted: so many of them, and one more for so many names."""

_SIZE = re.compile(r"[0-9]{1,18}")


class Object(NamedTuple):
    """An object of a bucket: its whole key, its size, and the tag of its bytes ("" if the listing has none)."""

    key: str
    size: int
    tag: str


class Page(NamedTuple):
    """A page of a listing, and the token of the next one, "" after the last."""

    objects: list[Object]
    next_token: str


@dataclass
class Listing:
    """What lies below a place: files by their relative path with size and tag, folders, and what cannot be named.

    `refused`: relative paths that no answer may use, and why.
    """

    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, size: int, tag: str) -> None:
        """Add an object by its path relative to the place.

        Raises
        ------
        NotServed : it is listed already
        """
        segments = path.removesuffix("/").split("/")
        if "\0" in path or any(part in ("", ".", "..") for part in segments):
            self.refused[path] = "its name has an empty part, `.`, `..` or a null byte, and is no path: it is not read"
            return
        if path in self.files:
            raise NotServed(errno.EIO, "the listing names an object twice")
        folder = "/".join(segments[:-1])
        if path.endswith("/"):
            folder = path.removesuffix("/")
        else:
            self.files[path] = (size, tag)
        while folder and folder not in self.folders:
            self.folders.add(folder)
            folder = folder.rpartition("/")[0]


def tag_of(text: str) -> str:
    """Return an ETag as it is compared: stores write it with quotation marks or without.

    >>> tag_of('"d41d8c"'), tag_of("d41d8c")
    ('d41d8c', 'd41d8c')
    """
    return text.removeprefix("W/").strip('"')


def list_all(ask: Callable[[str], Page], prefix: str, renew: Callable[[], None], whole: Deadline) -> Listing:
    """Return all below a prefix, "" or ending with "/", of pages that are asked for by their token.

    `renew` starts the time of a page again: when as many names have come as a page can have. `whole` is the deadline of
    all pages together: a large bucket and a server that never stops look the same.

    Raises
    ------
    NotServed : the pages do not end, not in time, or name something twice
    OverBudget : there are more names than may be
    """
    found, seen = Listing(), set[str]()
    token, names, renewed, most = "", 0, 0, budgets().files
    while True:
        try:
            page = ask(token)
        except NotServed:
            if whole.allows(0) or not names:
                raise
            raise _unfinished(whole, names) from None
        for item in page.objects:
            if path := item.key[len(prefix) :]:  # the place itself may be an object, too, as a marker of a folder
                found.add(path, item.size, item.tag)
        names += len(page.objects)
        if names > most:
            raise over("the number of files and folders below it", most)
        if not page.next_token:
            return found
        if page.next_token in seen:
            raise NotServed(errno.EIO, "the listing does not end: it comes back to a page that it had")
        seen.add(page.next_token)
        token = page.next_token
        if len(seen) > _SPARE_PAGES + names // _LEAST_NAMES:
            raise NotServed(errno.EIO, f"the listing does not end: {len(seen)} pages have {names} names")
        if not whole.allows(0):
            raise _unfinished(whole, names)
        if names - renewed >= PAGE_NAMES:
            renewed = names
            renew()


def _unfinished(whole: Deadline, names: int) -> NotServed:
    what = f"the listing did not end within {whole.seconds:.3g} s: {names} names so far (--store timeout=S)"
    return NotServed(errno.ETIMEDOUT, what)


def parse_page(body: bytes, prefix: str) -> Page:
    """Read a page of a listing, of names that begin with a prefix.

    Raises
    ------
    NotServed : it is no such page, or has what no listing has
    """
    from xml.parsers import expat  # only where a listing is read

    reader = _PageReader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse_declarations
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, UnicodeError):
        raise _unusable("it is not XML") from None
    return reader.page(prefix)


def _unusable(why: str) -> NotServed:
    """Say that a listing cannot be used."""
    return NotServed(errno.EIO, f"the store's listing cannot be used: {why}")


class _PageReader:
    """Collects the values of a page while expat reads it; only those that are asked for are kept."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._value: list[str] | None = None
        self._about: dict[str, str] = {}
        self._objects: list[dict[str, str]] = []

    def start(self, name: str, _attributes: Mapping[str, str]) -> None:
        """Take the start of an element."""
        self._path.append(name)
        if len(self._path) > _DEEP:
            raise _unusable("its elements are nested too deep")
        if len(self._path) == 1 and name != "ListBucketResult":
            raise _unusable("it is no list of objects")
        if self._path[1:] == ["Contents"]:
            self._objects.append({})
            if len(self._objects) > PAGE_NAMES:
                raise _unusable("a page has more names than were requested")
        about = len(self._path) == 2 and name in ("IsTruncated", "NextContinuationToken", "EncodingType")
        of_object = self._path[1:-1] == ["Contents"] and name in ("Key", "Size", "ETag")
        self._value = [] if about or of_object else None

    def text(self, text: str) -> None:
        """Take text of an element."""
        if self._value is not None:
            self._value.append(text)

    def end(self, name: str) -> None:
        """Take the end of an element."""
        if self._value is not None:
            held = self._objects[-1] if len(self._path) == 3 else self._about
            if name in held:
                raise _unusable(f"it has {name} twice")
            held[name] = "".join(self._value)
        self._value = None
        self._path.pop()

    def refuse_declarations(self, *_: object) -> None:
        """Refuse a document type: what it declares can grow without end, or lead to other files."""
        raise _unusable("it declares a document type")

    def page(self, prefix: str) -> Page:
        """Return the page, every value checked."""
        escaped = self._about.get("EncodingType", "") == "url"
        objects = [_object(item, escaped, prefix) for item in self._objects]
        token = self._about.get("NextContinuationToken", "")
        if self._about.get("IsTruncated", "false") != "true":
            return Page(objects, "")
        if not token or len(token) > _TOKEN_BYTES:
            raise _unusable("it says that there is more, and not how to ask for it")
        return Page(objects, token)


def _object(item: Mapping[str, str], escaped: bool, prefix: str) -> Object:
    """Return an object of a page, its name and size checked."""
    name, size = item.get("Key", ""), item.get("Size", "")
    if len(name) > 3 * _NAME_BYTES:
        raise _unusable(f"a name has {len(name)} characters")
    if escaped:
        try:
            name = unquote_plus(name, errors="strict")
        except UnicodeDecodeError:
            raise _unusable("a name is no UTF-8") from None
    if len(name.encode()) > _NAME_BYTES:
        raise _unusable(f"a name has {len(name.encode())} bytes")
    if not name.startswith(prefix):
        raise _unusable("it names an object outside the place that was requested")
    if not _SIZE.fullmatch(size):
        raise _unusable("the size of an object is no number of bytes")
    return Object(name, int(size), tag_of(item.get("ETag", "")))
