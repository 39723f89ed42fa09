"""What links below PATH lead to has a second name: it stays while the link does."""

from __future__ import annotations

from pathlib import Path

from tests.builders.flink_folders import OLD, job
from tests.reading.flink_folders import asked, fates


def test_what_a_link_leads_to_stays_and_all_else_goes(tmp_path: Path) -> None:
    job(tmp_path)
    before = fates(asked("retention", tmp_path, "--keep", "1", "--jobs-stopped", root=tmp_path))
    (tmp_path / "second-name").symlink_to(Path(OLD) / "chk-5" / "p5")
    answer = asked("retention", tmp_path, "--keep", "1", "--jobs-stopped", root=tmp_path)
    after = fates(answer)
    held = f"{OLD}/chk-5/p5"
    assert (before[held], after[held]) == (("OBSOLETE", "older"), ("KEEP", "linked"))
    assert {path: after[path] for path in before if path != held} == {p: f for p, f in before.items() if p != held}
    (row,) = (row for row in answer["result"]["rows"] if row["path"] == held)
    assert row["needed_by"] == "second-name"
    assert set(answer["result"]["rules"]) == {rule for _, rule in after.values()}


def test_rules_that_no_row_has_any_more_are_not_explained(tmp_path: Path) -> None:
    job(tmp_path, numbers=(6, 7))
    going = [
        path
        for path, (_, rule) in fates(
            asked("retention", tmp_path, "--keep", "1", "--jobs-stopped", root=tmp_path)
        ).items()
        if rule == "older"
    ]
    for number, path in enumerate(going):
        (tmp_path / f"link-{number}").symlink_to(path)
    rules = asked("retention", tmp_path, "--keep", "1", "--jobs-stopped", root=tmp_path)["result"]["rules"]
    assert set(rules) == {"restorable", "linked"}
