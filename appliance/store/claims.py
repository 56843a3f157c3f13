"""Rows of `claim` and `erasure_request`: what guests keep, and what they have asked."""

from appliance.store.connection import Reader, Transaction


def add_claim(tx: Transaction, device_hash: bytes, reservation_id: str) -> bool:
    """Let that browser keep the reservation; whether it did not before."""
    sql = """INSERT INTO claim (device_hash, reservation_id, at)
             VALUES (:device, :id, :at) ON CONFLICT DO NOTHING"""
    return tx.execute(sql, {"device": device_hash, "id": reservation_id, "at": tx.now}) > 0


def is_claimed(reader: Reader, device_hash: bytes, reservation_id: str) -> bool:
    """Whether that browser keeps the reservation."""
    sql = "SELECT 1 FROM claim WHERE device_hash = :device AND reservation_id = :reservation_id"
    return reader.row(sql, {"device": device_hash, "reservation_id": reservation_id}) is not None


def list_claimed(reader: Reader, device_hash: bytes, *, limit: int = 50) -> list[str]:
    """The reservations that a browser keeps, the latest evenings first."""
    sql = """SELECT r.id FROM claim c JOIN reservation r ON r.id = c.reservation_id
             WHERE c.device_hash = :device ORDER BY r.date DESC, r.starts DESC, r.id LIMIT :limit"""
    return [row[0] for row in reader.rows(sql, {"device": device_hash, "limit": limit})]


def delete_claims(tx: Transaction, device_hash: bytes) -> None:
    """That browser keeps nothing any more."""
    tx.execute("DELETE FROM claim WHERE device_hash = :device", {"device": device_hash})


def has_asked_for_erasure(reader: Reader, reservation_id: str) -> bool:
    """Whether its guest has asked that their data be erased."""
    sql = "SELECT 1 FROM erasure_request WHERE reservation_id = :id"
    return reader.row(sql, {"id": reservation_id}) is not None


def find_erasure_request(reader: Reader, reservation_id: str) -> int | None:
    """When its guest asked to be forgotten (ms since 1970); None where nothing is left to do."""
    sql = "SELECT at FROM erasure_request WHERE reservation_id = :id AND done_at IS NULL"
    return reader.one(int, sql, {"id": reservation_id})


def list_erasure_requests(reader: Reader) -> list[tuple[str, int]]:
    """What staff still have to see to, the earliest first: (reservation id, asked at)."""
    sql = "SELECT reservation_id, at FROM erasure_request WHERE done_at IS NULL ORDER BY at"
    return [(id_, at) for id_, at in reader.rows(sql)]
