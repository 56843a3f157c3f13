"""What is held of a guest beside the reservation: letters, scans, what partners were sent."""

from typing import Any
from urllib.parse import urlsplit

from appliance.clock import format_instant, optional_instant
from appliance.store.connection import Reader

Entry = dict[str, Any]


def list_letters_held(reader: Reader, reservation_id: str) -> list[Entry]:
    """Its letters, the earliest first."""
    sql = """SELECT kind, recipient, language, state, created_at, sent_at FROM letter
             WHERE reservation_id = :id ORDER BY created_at, id"""
    rows = reader.rows(sql, {"id": reservation_id})
    return [
        {"kind": kind, "to": recipient, "language": language, "state": state,
         "queuedAt": format_instant(queued), "sentAt": optional_instant(sent)}
        for kind, recipient, language, state, queued, sent in rows
    ]  # fmt: skip


def list_scans_held(reader: Reader, reservation_id: str) -> list[Entry]:
    """What the doors read of it, and what staff typed."""
    sql = """SELECT s.at, t.name, s.kind, s.result, s.admitted, s.reason
             FROM scan s JOIN terminal t ON t.id = s.terminal_id
             WHERE s.reservation_id = :id ORDER BY s.seq"""
    rows = reader.rows(sql, {"id": reservation_id})
    return [
        {"at": format_instant(at), "terminal": terminal, "kind": kind, "result": result,
         "admitted": admitted, "reason": reason}
        for at, terminal, kind, result, admitted, reason in rows
    ]  # fmt: skip


def list_deliveries_held(reader: Reader, reservation_id: str) -> list[Entry]:
    """Which partners' systems were sent it; the host alone, for an address may hold a secret."""
    sql = """SELECT e.type, e.occurred_at, p.url, d.state
             FROM event e JOIN delivery d ON d.event_seq = e.seq
             JOIN endpoint p ON p.id = d.endpoint_id
             WHERE e.reservation_id = :id ORDER BY d.seq"""
    rows = reader.rows(sql, {"id": reservation_id})
    return [
        {"event": kind, "at": format_instant(at), "host": urlsplit(url).hostname, "state": state}
        for kind, at, url, state in rows
    ]
