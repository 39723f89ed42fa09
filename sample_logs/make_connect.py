"""Make sample_logs/connect-offsets: what a Kafka Connect installation leaves of its source connectors' offsets.

    PYTHONPATH=. python sample_logs/make_connect.py            topic/ and export/: every run makes the same bytes
    PYTHONPATH=. python sample_logs/make_connect.py --java     standalone/ too, by Java's own serialisation

A map of byte arrays is written in the order of their addresses, so that Java makes other bytes each time.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.builders.connect import Topic, change, compact, entry, java_file, key
from tests.builders.kafka import ABORT, COMMIT

HERE = Path(__file__).resolve().parent / "connect-offsets"
START = 1_700_000_000_000
SHOP, STOCK, BOOKS = {"server": "shop"}, {"server": "stock"}, {"server": "books", "database": "ledger"}
GTIDS = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77"


def binlog(number: int, pos: int) -> dict[str, Any]:
    return {"ts_sec": START // 1000, "file": f"mysql-bin.{number:06}", "pos": pos, "server_id": 1}


def row(number: int, pos: int) -> dict[str, Any]:
    """The source block of a change in MySQL."""
    return {
        "version": "3.0.0.Final",
        "connector": "mysql",
        "name": "shop",
        "ts_ms": START + pos,
        "snapshot": "false",
        "db": "shop",
        "table": "orders",
        "server_id": 1,
        "gtid": None,
        "file": f"mysql-bin.{number:06}",
        "pos": pos,
        "row": 0,
    }


def offsets() -> dict[str, Topic]:
    """connect-offsets: three partitions, as the compaction of the newest segment has not begun yet."""
    first, second, third = Topic(), Topic(), Topic()
    first.add(entry("orders-mysql", SHOP, binlog(122, 90_210), START))
    first.add(entry("orders-mysql", SHOP, binlog(123, 4), START + 60_000))
    first.add(entry("orders-mysql", SHOP, binlog(123, 9_900), START + 90_000), producer=7).ended(7, ABORT)
    first.add(entry("orders-mysql", SHOP, binlog(123, 4_711), START + 120_000), producer=7).ended(7, COMMIT)
    place = {"lsn_proc": 38723552, "lsn_commit": 38723000, "lsn": 38723552, "txId": 1650, "ts_usec": START * 1000}
    second.add(entry("stock-postgres", STOCK, place | {"lsn": 38720000, "lsn_proc": 38720000}, START))
    second.add(entry("stock-postgres", STOCK, place, START + 110_000))
    snapshot = {"commit_lsn": "00000027:00000ac0:0002", "change_lsn": "00000027:00000ac0:0001", "event_serial_no": 1}
    third.add(entry("ledger-sqlserver", BOOKS, snapshot | {"snapshot": "INITIAL", "snapshot_completed": False}, START))
    third.add(entry("old-files", {"filename": "/srv/in.txt"}, {"position": 88}, START))
    third.add(entry("old-files", {"filename": "/srv/in.txt"}, None, START + 5_000))
    return {"connect-offsets-0": first, "connect-offsets-1": second, "connect-offsets-2": third}


def orders() -> Topic:
    """shop.shop.orders-0: what the connector has written; three changes lie behind its offset."""
    log = Topic()
    for number, pos in enumerate((300, 900, 1_800, 2_700, 4_200)):
        log.add(change(row(123, pos), number, START + number, schema=True))
    for number, pos in enumerate((4_811, 5_120, 5_900), 5):
        log.add(change(row(123, pos), number, START + number, schema=True))
    return log


def exported() -> str:
    """connect-offsets of another cluster, as kcat -J prints it."""
    records = [
        (0, 4, key("billing-mysql", {"server": "bills"}), binlog(40, 154) | {"gtids": GTIDS, "event": 2, "row": 1}),
        (1, 9, key("users-mongo", {"rs": "rs0", "server_id": "users"}), {"sec": 1_699_999_990, "ord": 3}),
        (1, 11, key("users-mongo", {"rs": "rs0", "server_id": "users"}), {"sec": 1_699_999_999, "ord": 1}),
    ]
    lines = (
        {
            "topic": "connect-offsets",
            "partition": partition,
            "offset": offset,
            "tstype": "create",
            "ts": START + offset * 1000,
            "broker": 1,
            "key": name.decode(),
            "payload": compact(value).decode(),
        }
        for partition, offset, name, value in records
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


def main() -> None:
    """Write the folders anew; README.md and expected.json stay."""
    for name in ("topic", "export"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    for name, log in offsets().items():
        log.write(HERE / "topic" / name)
    orders().write(HERE / "topic" / "shop.shop.orders-0")
    (HERE / "export").mkdir(parents=True)
    (HERE / "export" / "connect-offsets.jsonl").write_text(exported())
    if "--java" in sys.argv[1:]:
        (HERE / "standalone").mkdir(exist_ok=True)
        pairs = [
            (key("local-file-source", {"filename": "/var/log/app.log"}), compact({"position": 4096})),
            (
                key("audit-postgres", {"server": "audit"}),
                compact({"lsn_proc": 24_023_128, "lsn": 24_023_128, "txId": 9}),
            ),
        ]
        with tempfile.TemporaryDirectory() as scratch:
            java_file(Path(scratch), HERE / "standalone" / "connect.offsets", pairs)


if __name__ == "__main__":
    main()
