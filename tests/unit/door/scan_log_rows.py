"""Rows of the door log in numbers, for tests of pages and of time."""

from appliance.database.connection import Transaction
from appliance.door.check_in import add_scan
from appliance.door.terminals import issue_terminal


def add_rows(tx: Transaction, count: int) -> None:
    """`count` refused scans: scan-1, scan-2, …"""
    terminal_id = issue_terminal(tx, "Porte 1")[0]
    for n in range(1, count + 1):
        add_scan(
            tx,
            {"scan_id": f"scan-{n}", "terminal_id": terminal_id, "kind": "other",
             "result": "unknown_code", "admitted": 0, "verdict": "{}"},
        )  # fmt: skip
