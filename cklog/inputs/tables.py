"""What a parser of event-log tables offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from cklog.engine import Kernel, Reduce, Scan
from cklog.model.findings import Finding, InputUsed
from cklog.model.schemas import CHECKPOINTS

WITH_PLACES = pa.schema([*CHECKPOINTS, pa.field("_path", pa.string()), pa.field("_offset", pa.int64())])
"""A checkpoint record and where it was read."""


class Tables(Protocol):
    """What a parser of event-log tables offers (`cklog.parsers.native.parser` is one)."""

    manifest: Mapping[str, Any]

    def has(self, table: str) -> bool: ...
    def bytes_of(self, table: str) -> int: ...
    def findings(self, table: str) -> tuple[Finding, ...]: ...
    def inputs(self, table: str, records_read: dict[str, int]) -> tuple[InputUsed, ...]: ...
    def scan(
        self,
        table: str,
        columns: tuple[str, ...],
        kernel: Kernel,
        partial: pa.Schema,
        reduce: Reduce | None,
        split_bytes: int,
        wanted: Callable[[dict[str, tuple[Any, Any]]], bool] | None = None,
    ) -> Scan: ...
