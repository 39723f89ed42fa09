"""Mutations of Parquet: pages and their headers, the footer, and its length."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.mutations.change import Change, Mutation, some_file
from tests.fuzz.tree import Tree


@functools.lru_cache(maxsize=64)
def _chunks(data: bytes) -> list[tuple[int, int]]:
    """Where column chunks lie: (first byte, byte behind), the first of each being a page's header."""
    footer = pq.read_metadata(pa.BufferReader(data))
    found = []
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            pages = [column.data_page_offset]
            pages += [column.dictionary_page_offset] if column.has_dictionary_page else []
            found.append((min(pages), min(pages) + column.total_compressed_size))
    return found


def _parquet(tree: Tree, dice: random.Random) -> tuple[str, bytearray, list[tuple[int, int]]] | None:
    found = some_file(tree, dice, (".parquet",))
    if found is None:
        return None
    if found[1] != tree.files[found[0]]:
        return None  # of a damaged footer pyarrow may end the process
    chunks = _chunks(found[1])
    return (found[0], bytearray(found[1]), chunks) if chunks else None


def header(tree: Tree, dice: random.Random) -> Change | None:
    """A byte of a page's header: its kind, sizes, encodings, counts."""
    found = _parquet(tree, dice)
    if found is None:
        return None
    name, data, chunks = found
    at = dice.choice(chunks)[0] + dice.randrange(16)
    data[at] = dice.choice((data[at] ^ 1 << dice.randrange(8), 0, 255, 127, 128))
    tree.put(name, bytes(data))
    return Change((name,), f"{name}: page header, byte {at}")


def body(tree: Tree, dice: random.Random) -> Change | None:
    """A stretch of a page: flipped or zeroed."""
    found = _parquet(tree, dice)
    if found is None:
        return None
    name, data, chunks = found
    first, end = dice.choice(chunks)
    at = dice.randrange(first, end)
    if dice.random() < 0.5:
        data[at] ^= 1 << dice.randrange(8)
    else:
        data[at:end] = bytes(end - at)
    tree.put(name, bytes(data))
    return Change((name,), f"{name}: page, from byte {at} of {first}-{end}")


def swapped(tree: Tree, dice: random.Random) -> Change | None:
    """Two column chunks change places."""
    found = _parquet(tree, dice)
    if found is None or len(found[2]) < 2:
        return None
    name, data, chunks = found
    (a, b), (c, d) = sorted(dice.sample(chunks, 2))
    tree.put(name, bytes(data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]))
    return Change((name,), f"{name}: pages {a}-{b} and {c}-{d} swapped")


def footer(tree: Tree, dice: random.Random) -> Change | None:
    """A byte of the footer, or its length."""
    found = _parquet(tree, dice)
    if found is None:
        return None
    name, data, _ = found
    if dice.random() < 0.2:
        data[-8:-4] = struct.pack("<I", dice.choice((0, 1, len(data), 2**31 - 1, 2**32 - 1)))
        what = "length"
    else:
        length = struct.unpack_from("<I", data, len(data) - 8)[0]
        at = len(data) - 8 - 1 - dice.randrange(max(1, min(length, len(data) - 9)))
        data[at] = dice.choice((data[at] ^ 1 << dice.randrange(8), 0, 255))
        what = f"byte {at}"
    tree.put(name, bytes(data))
    return Change((name,), f"{name}: footer, {what}")


MUTATIONS: Mapping[str, tuple[Mutation, int]] = {
    "parquet.header": (header, 8),
    "parquet.page": (body, 8),
    "parquet.swap": (swapped, 3),
    "parquet.footer": (footer, 6),
}
