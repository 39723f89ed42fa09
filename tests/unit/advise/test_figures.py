"""Numbers of Meteor Shower and of US patent 9,471,438, as `docs/fidelity.md` lists them, and how far off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.fidelity_delta import bounds, deletions, grown, index_sizes
from benchmarks.fidelity_meteor import APPS, below, bytes_saved, failures, preserved, saved
from tests.conftest import REPOSITORY
from tests.program import cklog


def test_table_1_of_meteor_shower() -> None:
    """The network's AFN100 is over 300 by the text's figures, and 20 racks of 80 nodes are among its failures."""
    network, all_causes, racks = failures()
    assert network == pytest.approx(7640 / 24)
    assert network > 300
    assert all_causes == pytest.approx(300 + (100 + 150) / 2 + 100 + (1.7 + 8.6) / 2 + 1.3)
    assert racks == pytest.approx(20 * 80 / 24)
    assert racks < network < all_causes


@pytest.mark.parametrize(("name", "least", "average"), [("TMI", 0, 150), ("SignalGuru", 200, 1000)])
def test_what_is_saved_follows_from_two_sizes_of_the_text(name: str, least: int, average: int) -> None:
    """Arithmetic: a checkpoint at the least size, against one at the average size."""
    assert 1 - least / average == APPS[name].saved / 100
    assert any(f"| {name}, period" in row and f"| {1 - least / average:.0%} |" in row for row in bytes_saved())


@pytest.mark.parametrize(("name", "period_s", "within"), [("TMI", 600, 0.01), ("SignalGuru", 200, 0.03)])
def test_what_aware_checkpoints_save(name: str, period_s: int, within: float) -> None:
    """Section I: about 100% and 80%; the state is taken to grow evenly, which the text does not say: three points."""
    aware, best = saved(APPS[name], period_s)
    assert aware == pytest.approx(APPS[name].saved / 100, abs=within)
    assert aware <= best + 1e-9


def test_what_aware_checkpoints_save_otherwise_than_said() -> None:
    """BCP's least and average size give 75% for the paper's 50; TMI at three checkpoints a window 57% for its 100."""
    assert saved(APPS["BCP"], 200)[0] - APPS["BCP"].saved / 100 > 0.2
    assert APPS["TMI"].saved / 100 - saved(APPS["TMI"], 200)[1] > 0.3


def test_input_preservation_saves_a_tuple_of_a_chain_once_for_each_operator_but_the_last(tmp_path: Path) -> None:
    """Section I: "for a chain of n operators every tuple has to be saved n - 1 times"; a source saves it once. Q1 is a
    chain of three, `bids -> map -> sink`; a tuple may be on its way when the run ends."""
    setting = ["--query", "q1", "--workers", "1", "--rate", "50", "--failure-at", "8", "--protocol", "unc"]
    assert cklog("simulate", "nexmark", tmp_path / "run", *setting, "--encoding", "jsonl").code == 0
    every, few = preserved(str(tmp_path / "run"))
    assert few.messages > 100
    assert 0 <= 2 * few.messages - every.messages <= 5
    text = "".join(path.read_text() for path in (tmp_path / "run" / "channels").glob("*.jsonl"))
    assert few.messages == text.count('"bids/0->map/0"')
    assert every.messages == few.messages + text.count('"map/0->sink/0"')


def test_a_join_of_two_sources_is_preserved_at_both() -> None:
    """Written out of the sample's files, of which each has the messages of one operator."""
    folder = REPOSITORY / "sample_logs" / "uncoordinated-join" / "channels"
    sizes = {
        path.stem: [int(n) for n in re.findall(r'"bytes": ?(\d+)', path.read_text())] for path in folder.glob("*.jsonl")
    }
    at_sources = sizes["orders"] + sizes["payments"]
    every, few = preserved(str(folder.parent))
    assert few == (len(at_sources), sum(at_sources))
    assert every == (len(at_sources) + len(sizes["join"]), sum(at_sources) + sum(sizes["join"]))


def test_below_s_max_taken_literally_misses_a_profiled_period() -> None:
    at, literally = below()
    assert at.endswith("| 130 MB |")
    assert literally.endswith("| 310 MB, forced |")


def test_each_number_of_the_patent_comes_out() -> None:
    """6, 5 and 8 are exact, and so are the index's bytes and the benefit test: no tolerance."""
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in (*bounds(), *index_sizes())]
    assert [(said.removeprefix("D <= "), found) for _, said, found in rows] == [
        ("6", "6"),
        ("5", "5"),
        ("8", "8"),
        ("no, yes", "no, yes"),
        ("9 B, 25 B", "9 B, 25 B"),
    ]


def test_the_patents_ratio_is_no_bound_on_what_comes_after() -> None:
    """It says that the ratio bounds the worst case; D is set by deltas before."""
    assert grown(1.5) > 1.5
    assert grown(3.0) > 3.0


def test_the_patents_deletion_taken_literally() -> None:
    """It keeps what nothing needs, and takes what another checkpoint needs; cklog does neither."""
    kept, taken = deletions()
    assert "literally [1, 2], cklog []" in kept
    assert "literally [3], cklog [1, 3]" in taken
