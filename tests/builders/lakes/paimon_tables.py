"""Write the tables of Paimon that tests read, by pypaimon 2.1: `python paimon_tables.py FOLDER`.

pypaimon needs a pyarrow below 20, which cklog does not go with, so this runs in an environment of its own, and the
metadata that it wrote lie in `tests/unit/parsers/sink_tables/paimon/`. Data files and manifests are left out: they are
not read. It wrote, in this order: identifiers 1 to 3 of a stream, a tag on snapshot 2, a branch from that tag, an
overwrite by a batch, identifier 4; then a copy was rolled back to snapshot 2 and took identifiers 3 and 4 again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

KEPT = ("snapshot", "schema", "tag", "branch")
ROWS = pa.table({"a": [1, 2]})


def commit(builder: Any, *identifier: int) -> None:
    writer, committer = builder.new_write(), builder.new_commit()
    writer.write_arrow(ROWS)
    committer.commit(writer.prepare_commit(*identifier), *identifier)
    writer.close()
    committer.close()


def keep(table: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    for name in KEPT:
        if (table / name).exists():
            shutil.copytree(table / name, to / name)


def main(target: Path) -> None:
    from pypaimon import CatalogFactory, Schema

    warehouse = target / "warehouse"
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("d", True)
    catalog.create_table("d.t", Schema.from_pyarrow_schema(ROWS.schema), False)
    table = catalog.get_table("d.t")
    stream = table.new_stream_write_builder()
    for identifier in (1, 2, 3):
        commit(stream, identifier)
    table.create_tag("before", 2)
    table.branch_manager().create_branch("audit", "before")
    commit(table.new_batch_write_builder().overwrite())
    commit(stream, 4)
    keep(warehouse / "d.db" / "t", target / "stream")
    table.rollback_to(2)
    for identifier in (3, 4):
        commit(stream, identifier)
    keep(warehouse / "d.db" / "t", target / "rolled-back")
    shutil.rmtree(warehouse)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
