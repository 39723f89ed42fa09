"""A report as one file of HTML: nothing is loaded, everything of the input is text, and it is readable without scripts.

Every expression of the page goes through `_shown`, and what comes out of it is escaped by Jinja. The only markup that
is put in as it is are drawings of ours, whose texts are escaped where they are drawn. The page's policy allows the
scripts by their hashes, and no other.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import astuple, dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from cklog.model.findings import Finding
from cklog.model.wording import many, utc
from cklog.render.text import visible, visible_lines
from cklog.render.view import Section
from cklog.report.compose import FOLDED_ABOVE, Composed
from cklog.report.curves import HEIGHT, failures_curve
from cklog.report.markdown import command_line
from cklog.report.model import Report
from cklog.report.orphans import orphan_chains, step_sentences
from cklog.report.parts import (
    all_findings,
    evidence_section,
    explained,
    no_runbook,
    runbook_command,
    runs_section,
    sentence,
    shown_command,
    shown_parts,
    verdict_line,
)
from cklog.runbook.view import before_steps, step_title
from cklog.version import __version__

_MOST_ROWS = 10_000
_MOST_MESSAGES = 100
_MOST_STEPS = 5_000
_SCRIPTS = ("vendor/panzoom.min.js", "vendor/datatables.min.js", "report.js")


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as the page has it; `left` rows are not in it."""

    table: Section
    rows: tuple[tuple[Any, ...], ...]
    numeric: tuple[bool, ...]
    left: str


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one id and severity, with what they mean, once."""

    severity: str
    id: str
    findings: tuple[Finding, ...]
    count: str
    means: tuple[str, ...]
    left: str


def as_html(composed: Composed) -> str:
    """Write the page."""
    report = composed.answer.result
    scripts = [_script(name) for name in _SCRIPTS]
    drawing = composed.picture
    return (
        _environment()
        .from_string(_asset("report.html.j2"))
        .render(
            policy=_policy(scripts),
            scripts=[Markup(text) for text in scripts],
            style=Markup(_asset("report.css")),
            verdict=verdict_line(composed),
            code=composed.answer.exit_code,
            report=report,
            steps=()
            if report.runbook is None
            else [(one, step_title(report.runbook, one)) for one in report.runbook.steps],
            before="" if report.runbook is None else before_steps(report.runbook),
            no_runbook=no_runbook(report),
            sentence=sentence,
            runbook_command=runbook_command(report),
            shown_command=lambda command: shown_command(command, runbook_command(report)),
            runs=_table(runs_section(report)),
            picture=None if drawing is None else Markup(drawing.svg),
            picture_notes=() if drawing is None else drawing.notes,
            no_picture=composed.no_picture,
            folded=composed.folded,
            folded_above=FOLDED_ABOVE,
            curve=Markup(failures_curve(report.failures)) if report.failures else "",
            moments=0 if report.failures is None else len(report.failures.moments),
            parts=[(shown, [_table(one) for one in shown.sections]) for shown in shown_parts(composed)],
            groups=_groups(all_findings(composed)),
            damage=len(report.damage),
            evidence=_table(evidence_section(report)),
            command=command_line(composed),
            version=__version__,
            data=_data(report),
        )
    ) + "\n"


def _shown(value: Any) -> Any:
    """What of a value is shown: no secret, and nothing that hides; `Markup` is ours."""
    if isinstance(value, Markup):
        return value
    return visible_lines(str(value))


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=True, finalize=_shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _asset(name: str) -> str:
    place = files("cklog.report") / "assets"
    for part in name.split("/"):
        place = place / part
    return place.read_text(encoding="utf-8")


def _script(name: str) -> str:
    return f"\n{_asset(name)}\n"


def _policy(scripts: list[str]) -> str:
    """Return what the page may do: run these scripts, and load nothing."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _table(section: Section) -> ShownTable:
    rows = section.rows[:_MOST_ROWS]
    left = len(section.rows) - len(rows)
    numeric = tuple(
        bool(column) and all(isinstance(cell, int) or str(cell).isdigit() or cell == "-" for cell in column)
        for column in (tuple(row[i] for row in rows) for i in range(len(section.columns)))
    )
    words = f"The first {len(rows):,} of {len(section.rows):,} rows: --format json has them all." if left else ""
    return ShownTable(section, rows, numeric, words)


def _groups(findings: tuple[Finding, ...]) -> list[FindingGroup]:
    """Put findings of one id together, errors first."""
    order = {"error": 0, "warning": 1, "info": 2}
    found = []
    ordered = sorted(findings, key=lambda f: (order[f.severity], f.id))
    for (severity, name), group in groupby(ordered, key=lambda f: (f.severity, f.id)):
        members = tuple(group)
        left = len(members) - _MOST_MESSAGES
        more = f"And {left:,} more: --format json has them all." if left > 0 else ""
        means = explained(members[0]).means
        count = many(len(members), "finding", grouped=True) if len(members) > 1 else ""
        found.append(FindingGroup(severity, name, members[:_MOST_MESSAGES], count, means, more))
    return found


def _data(report: Report) -> Markup:
    """Return what the scripts show, as JSON in which nothing ends the element that holds it."""
    chains = {name: steps for name, steps in orphan_chains(report.recovery_line).items() if max(steps) < _MOST_STEPS}
    moments = report.failures.moments if report.failures else ()
    sentences = step_sentences(report.recovery_line)[:_MOST_STEPS]
    told = {
        "chains": {visible(name): steps for name, steps in chains.items()},
        "steps": [_shown(text) for text in sentences],
        "moments": [[utc(m.time), *astuple(m)[1:]] for m in moments],
        "height": HEIGHT,
    }
    text = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
