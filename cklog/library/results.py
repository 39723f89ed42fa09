"""What a run answers, typed, with the ways out of it: dict, JSON, Arrow, pandas, networkx, SVG, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from cklog.errors import CklogError, UsageError
from cklog.model.findings import Finding, InputUsed
from cklog.model.verdict import Answer
from cklog.render.formats import FORMATS, envelope, render
from cklog.render.text import visible
from cklog.render.view import headline_of, view

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow

    from cklog.graphs.graph import CheckpointGraph
    from cklog.graphs.selection import GraphQuestion

_FIRST = ("nodes", "edges")
"""Tables that come before those of the line, where there are any."""

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Answer[R_co]):
    """Hold an answer: `result` is what was asked for, `findings` what must be known of the input.

    Attributes
    ----------
    command : the command that answers the same
    verdict : ok, findings, unrecoverable or indeterminate
    exit_code : what the command would exit with; 0 where nothing is wrong
    inputs : what the answer rests on
    findings : facts about the input, worst first
    result : the answer itself, of a type of its own
    spoken : what the command says on stderr beside it
    """

    spoken: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """Say the answer in one sentence."""
        return visible(headline_of(view(self), self.findings))

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints, as a dict."""
        return envelope(self)

    def to_json(self) -> str:
        """Return what `--json` prints."""
        return self.to_text("json")

    def to_text(self, form: str = "table") -> str:
        """Return what `--format` prints: table, json, jsonl, csv, md, kv or env."""
        if form not in FORMATS:
            raise UsageError(f"format {form}: not one of {', '.join(FORMATS)}")
        return render(self, form)

    @property
    def tables(self) -> tuple[str, ...]:
        """Name the tables of the answer; the first is the one that `to_arrow()` gives."""
        from cklog.library.tables import tables_of

        found = [*tables_of(self.result), "findings", "inputs"]
        return tuple(sorted(found, key=lambda name: name not in _FIRST))

    def to_arrow(self, table: str = "") -> pyarrow.Table:
        """Return one of `tables` as an Arrow table with typed columns; "": the first."""
        from cklog.library.tables import arrow_table, tables_of

        found = {**tables_of(self.result), **tables_of(_Said(self.findings, self.inputs))}
        name = table or self.tables[0]
        if name not in found:
            raise UsageError(f"table {name}: not one of {', '.join(found)}")
        return arrow_table(*found[name])

    def to_pandas(self, table: str = "") -> pandas.DataFrame:
        """Return one of `tables` as a data frame; "": the first. Numbers stay whole where some are missing."""
        try:
            import pandas
        except ImportError:
            raise UsageError("to_pandas needs pandas", "pip install pandas, or take to_arrow()") from None
        import pyarrow

        exact = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
        found: pandas.DataFrame = self.to_arrow(table).to_pandas(types_mapper=exact.get)
        return found

    def __repr__(self) -> str:
        return f"<cklog {self.command}: {self.verdict}: {self.headline}>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """Return the answer as a notebook shows it."""
        from cklog.render.fragment import html_fragment

        return html_fragment(self)


@dataclass(frozen=True, slots=True)
class _Said:
    """The parts of an answer that are tables whatever was asked."""

    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]


@dataclass(frozen=True, slots=True, repr=False)
class GraphResult(Result["CheckpointGraph"]):
    """Hold a checkpoint graph, which is a networkx graph and a picture too."""

    asked: GraphQuestion = field(kw_only=True, compare=False)
    again: Callable[[GraphQuestion], Answer[CheckpointGraph]] = field(kw_only=True, compare=False)

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """Return the graph for networkx: nodes `op/sub=checkpoint`, with what the rows say as attributes."""
        from cklog.graphs.exports import networkx_graph

        return networkx_graph(self.result)

    def to_dot(self) -> str:
        """Return the graph as DOT for Graphviz."""
        return self._exported("dot")

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return self._exported("mermaid")

    def to_svg(self, *, fold: bool = False, width: float | None = None, everything: bool = False) -> str:
        """Draw the space-time diagram as SVG: a window around the line where `everything` is too long for a page.

        `fold` draws one lane for each operator, `width` is that of the page in pixels. The run is asked again for the
        part that is drawn.
        """
        found = self._picture("svg", fold, width, everything)
        assert isinstance(found, str)
        return found

    def to_pdf(self, *, fold: bool = False, width: float | None = None, everything: bool = False) -> bytes:
        """Draw the same as PDF; needs `pip install 'cklog[pictures]'`."""
        return self._converted("pdf", fold, width, everything)

    def to_png(self, *, fold: bool = False, width: float | None = None, everything: bool = False) -> bytes:
        """Draw the same as PNG; needs `pip install 'cklog[pictures]'`."""
        return self._converted("png", fold, width, everything)

    def _picture(self, form: str, fold: bool, width: float | None, everything: bool) -> str | bytes:
        from cklog.graphs.exports import picture_of
        from cklog.render.pictures import require_converter

        require_converter(form)
        asked = replace(self.asked, form=form, fold=fold, width=width, everything=everything)
        return picture_of(self.again(asked), asked)[0]

    def _converted(self, form: str, fold: bool, width: float | None, everything: bool) -> bytes:
        found = self._picture(form, fold, width, everything)
        assert isinstance(found, bytes)
        return found

    def _exported(self, form: str) -> str:
        from cklog.graphs.exports import graph_formats

        asked = replace(self.asked, form=form)
        return graph_formats()[form](self.again(asked))

    def _repr_svg_(self) -> str | None:
        """Return the picture as a notebook shows it; None where there can be none."""
        try:
            return self.to_svg()
        except CklogError:
            return None

    def _repr_html_(self) -> str:
        """Return headline, picture and findings; tables where there is no picture."""
        from cklog.render.fragment import html_fragment

        return html_fragment(self, self._repr_svg_() or "")
