"""The hand-written decoders of cklog, each with how its inputs are made and what it is compared with."""

from __future__ import annotations

from tests.differential.decoders import (
    avro,
    flink,
    java_maps,
    json_lines,
    kafka,
    parquet,
    parquet_folded,
    pickled,
    sst,
    streams,
)
from tests.differential.verdicts import Decoder

DECODERS: tuple[Decoder, ...] = (
    *kafka.DECODERS,
    *avro.DECODERS,
    *pickled.DECODERS,
    *java_maps.DECODERS,
    *parquet.DECODERS,
    *parquet_folded.DECODERS,
    *json_lines.DECODERS,
    *streams.DECODERS,
    *sst.DECODERS,
    *flink.DECODERS,
)


def decoder_of(name: str) -> Decoder:
    """Return the decoder of a name."""
    for decoder in DECODERS:
        if decoder.name == name:
            return decoder
    raise SystemExit(f"no decoder {name!r}; there are {', '.join(one.name for one in DECODERS)}")
