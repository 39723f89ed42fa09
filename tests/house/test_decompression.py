"""Everything is decompressed in one place, and arrays to be filled are made in one place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.source_tree import modules

WRAPPERS = {"decompression.py", "streams.py", "zip_archives.py"}
"""Of `parsers/codecs`: these check how much was produced."""

MODULES = {"zlib", "bz2", "lzma", "gzip", "zipfile", "tarfile"} | {"lz4", "snappy", "zstandard", "cramjam", "brotli"}
CHECKSUMS = {"crc32", "adler32"}
PYARROW = {"Codec", "decompress", "CompressedInputStream", "input_stream"}
EMPTY = {"empty", "empty_like", "allocate_buffer"}
WRITES = {"GzipFile", "ZipFile"}
"""Calls of these are no decompression where their mode is to write."""


def _reads_archives(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a name of `gzip` or `zipfile` is used otherwise than to write."""
    call = parents.get(node)
    if not (isinstance(node, ast.Attribute) and node.attr in WRITES and isinstance(call, ast.Call)):
        return True
    given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return not any(isinstance(one, ast.Constant) and one.value in ("w", "wb", "x", "a") for one in given)


def raw_uses(source: str) -> set[str]:
    """Return what a module uses of libraries that decompress."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names: dict[str, str] = {}  # a local name, and the library or the member of one that it stands for
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[(alias.asname or alias.name).split(".")[0]] = alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            library = node.module.split(".")[0]
            for alias in node.names:
                if (library == "pyarrow" and alias.name in PYARROW) or (
                    library in MODULES and alias.name not in CHECKSUMS
                ):
                    found.add(f"{library}.{alias.name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            library, member = names[node.value.id], node.attr
            if library == "pyarrow" and member in PYARROW:
                found.add(f"{library}.{member}")
            elif library in ("gzip", "zipfile"):
                if member in ("ZIP_DEFLATED", "ZIP_STORED", "ZipInfo") or not _reads_archives(node, parents):
                    continue
                found.add(f"{library}.{member}")
            elif library in MODULES and member not in CHECKSUMS:
                found.add(f"{library}.{member}")
    return found


def unfilled_arrays(source: str) -> set[str]:
    """Return the calls of a module that make arrays whose contents are not set."""
    nodes = ast.walk(ast.parse(source)) if any(name in source for name in EMPTY) else ()
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in EMPTY}


_NAMES = re.compile("|".join(MODULES | PYARROW))


def _place(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def test_only_the_wrappers_decompress() -> None:
    """A decompressor does not say how much it produced, or goes on after an end: the wrappers check both."""
    texts = {path: path.read_text() for path in modules()}
    used = {path: raw_uses(text) for path, text in texts.items() if _NAMES.search(text)}
    wrappers = {REPOSITORY / "parsers" / "codecs" / name for name in WRAPPERS}
    assert {_place(path): names for path, names in used.items() if names and path not in wrappers} == {}
    assert all(used[path] for path in wrappers)


@pytest.mark.parametrize("folder", ["parsers", "cklog/arrays"])
def test_only_one_module_makes_arrays_that_decoders_fill(folder: str) -> None:
    """Tests fill them there: see `tests/property/parsers/test_fill_bytes.py`."""
    made = [
        path for path in modules() if path.is_relative_to(REPOSITORY / folder) and unfilled_arrays(path.read_text())
    ]
    assert made == ([REPOSITORY / "cklog/arrays/buffers.py"] if folder == "cklog/arrays" else [])


@pytest.mark.parametrize(
    "source",
    [
        "import pyarrow as pa\npa.Codec('gzip').decompress(b'', 3)",
        "import pyarrow as pa\npa.decompress(b'', 3, 'snappy')",
        "from pyarrow import Codec",
        "import pyarrow\npyarrow.CompressedInputStream(file, 'zstd')",
        "import pyarrow as pa\npa.input_stream(path)",
        "import zlib\nzlib.decompressobj()",
        "from zlib import decompress",
        "import bz2\nbz2.decompress(b'')",
        "import gzip\ngzip.open(path)",
        "import gzip\ngzip.GzipFile(path)",
        "import zipfile\nzipfile.ZipFile(path)",
        "import lz4.block\nlz4.block.decompress(b'')",
    ],
)
def test_a_raw_call_is_seen(source: str) -> None:
    assert raw_uses(source)


@pytest.mark.parametrize(
    "source",
    [
        "import zlib\nzlib.crc32(b'')",
        "import gzip\ngzip.GzipFile(filename='', mode='wb', fileobj=file)",
        "import zipfile\nzipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED)",
        "import pyarrow as pa\npa.BufferReader(b'')",
    ],
)
def test_what_does_not_decompress_is_allowed(source: str) -> None:
    assert not raw_uses(source)
