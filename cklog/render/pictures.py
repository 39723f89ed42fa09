"""Pictures as PDF and PNG, converted from SVG by vl-convert: a wheel with fonts, that needs nothing of the system."""

from __future__ import annotations

import re
from importlib.util import find_spec

from cklog.errors import UsageError
from cklog.render.pdf import in_order

CONVERTED = ("pdf", "png")
"""Formats of bytes that an SVG is converted to."""

_POINTS = 0.75  # of a pixel, of which 96 are an inch
_LONGEST_PAGE = 14_400.0  # points that viewers open
_SHARP = 2.0  # pixels of a PNG for each of the SVG,
_MOST_PIXELS = 60e6  # but not more than these in all
_SIZE = re.compile(r'(<svg[^>]*) width="([\d.]+)" height="([\d.]+)"')


def require_converter(form: str) -> None:
    """Raise `UsageError` if what converts pictures to `form` is not installed."""
    if form in CONVERTED and find_spec("vl_convert") is None:
        raise UsageError(f"--format {form} needs a library that is not here", "pip install 'cklog[pictures]'")


def converted(svg: str, form: str) -> bytes:
    """Return an SVG picture as the bytes of a PDF, or of a PNG as sharp as its size allows."""
    require_converter(form)
    import vl_convert

    size = _SIZE.match(svg)
    assert size is not None
    wide, high = float(size[2]), float(size[3])
    if form == "pdf":
        scale = min(_POINTS, _LONGEST_PAGE / max(wide, high))
        in_points = f'{size[1]} width="{wide * scale:.2f}" height="{high * scale:.2f}"'
        return in_order(vl_convert.svg_to_pdf(in_points + svg[size.end() :]))
    png: bytes = vl_convert.svg_to_png(svg, scale=min(_SHARP, (_MOST_PIXELS / (wide * high)) ** 0.5))
    return png
