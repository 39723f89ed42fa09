"""Links between jobs, what is not known of them, and the order of restarts."""

from __future__ import annotations

from cklog.inputs.feeds import Feeds, Input, Output, Point, Written
from cklog.joint.graph import links_of, lost_of, newest_vector
from cklog.joint.order import Turn, restart_order


def job(
    name: str, reads: dict[str, list[int]], writes: dict[str, list[int]], output: Output | None = None, kept: int = 0
) -> Feeds:
    """A job whose points, newest first, have read and written so much; its outputs skip what they have."""
    length = max(map(len, [*reads.values(), *writes.values()]))
    points = tuple(
        Point(
            f"{name}{length - i}",
            (),
            {given: numbers[i] for given, numbers in reads.items()},
            {made: Written(numbers[i], numbers[i] + kept) for made, numbers in writes.items()},
        )
        for i in range(length)
    )
    outputs = tuple(output or Output(made, numbers[0], "skips", numbers[0]) for made, numbers in writes.items())
    return Feeds(name, tuple(map(Input, reads)), outputs, points)


def test_a_diamond_falls_to_what_both_of_its_sides_allow() -> None:
    jobs = [
        job("a", {}, {"x": [2, 0]}, Output("x", 4, "skips", 4)),
        job("b", {"x": [4, 2, 0]}, {"y": [4, 2, 0]}),
        job("c", {"x": [2, 0]}, {"z": [2, 0]}),
        job("d", {"y": [3, 1], "z": [2, 1]}, {}),
    ]
    links = links_of(jobs)
    found = newest_vector(jobs, links)
    assert found.points == (0, 1, 0, 1)
    assert [(fall.job, fall.link.output.name, fall.first, fall.end) for fall in found.falls] == [
        (1, "x", 2, 4),
        (3, "y", 2, 3),
    ]


def test_a_cycle_restarts_together_and_is_told() -> None:
    jobs = [job("a", {"y": [1, 0]}, {"x": [1, 0]}), job("b", {"x": [1, 0]}, {"y": [1, 0]})]
    links = links_of(jobs)
    assert newest_vector(jobs, links).points == (0, 0)
    assert restart_order(2, links, (0, 0)) == [Turn(0, (), (1,)), Turn(1, (), (0,))]


def test_a_reader_waits_for_what_has_to_be_written_again() -> None:
    over = Output("x", 3, "overwrites")
    jobs = [job("b", {"x": [3, 2]}, {}), job("a", {}, {"x": [2, 0]}, over, kept=1)]
    links = links_of(jobs)
    assert newest_vector(jobs, links).points == (0, 0)
    assert restart_order(2, links, (0, 0)) == [Turn(1, (), ()), Turn(0, (), ())]
    taken_back = Output("x", 2, "skips", 2)
    jobs[1] = job("a", {}, {"x": [2, 0]}, taken_back, kept=1)
    links = links_of(jobs)
    assert newest_vector(jobs, links).points == (0, 0)  # batch 2 is not there, and comes again as it was
    assert restart_order(2, links, (0, 0)) == [Turn(1, (), ()), Turn(0, (1,), ())]


def test_what_nobody_knows_forces_nothing_and_is_said() -> None:
    jobs = [job("a", {}, {"x": [1, 0]}, Output("x", None, "skips", 3)), job("b", {"x": [3, 1]}, {})]
    [link] = links_of(jobs)
    assert "nothing tells what x holds" in link.unknown
    assert newest_vector(jobs, [link]).points == (0, 0)


def test_numbers_that_rise_towards_older_points_force_nothing_and_are_said() -> None:
    jobs = [job("a", {}, {"x": [3, 0]}), job("b", {"x": [1, 2]}, {})]
    [link] = links_of(jobs)
    assert "an older point has read" in link.unknown


def test_a_file_that_the_writer_does_not_list_orphans_its_reader_wherever_the_writer_restarts() -> None:
    listed = Output("out", 2, "skips", 2, files={"file:/out/a": 0, "file:/out/b": 1})
    reader = Feeds(
        "b",
        (Input("in", {"file:/out/a": 0, "file:/out/gone": 1, "file:/other/z": 2}),),
        (),
        tuple(Point(f"batch {n}", (), {"in": n}, {}) for n in (3, 2, 1, 0)),
    )
    jobs = [job("a", {}, {"out": [2, 0]}, listed), reader]
    [link] = links_of(jobs)
    assert link.read == (3, 3, 1, 0)
    assert newest_vector(jobs, [link]).points == (0, 2)


def test_no_points_fit_where_even_the_oldest_has_read_too_much() -> None:
    jobs = [job("a", {}, {"x": [1, 0]}), job("b", {"x": [9, 8]}, {})]
    found = newest_vector(jobs, links_of(jobs))
    assert found.points is None
    assert "oldest point of b" in found.stuck


def test_what_a_reader_needs_and_is_gone_is_counted() -> None:
    jobs = [job("a", {}, {"x": [9, 0]}, Output("x", 9, first=5)), job("b", {"x": [3, 1]}, {})]
    [link] = links_of(jobs)
    assert lost_of(link, (0, 0)) == 2
