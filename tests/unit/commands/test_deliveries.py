"""`venuebox deliveries`."""


def test_deliveries_are_listed_with_one_attempt_per_line(box):
    with box.transaction() as tx:
        tx.insert("endpoint", {"id": "e-1", "url": "https://x.example", "events": "[]",
                               "active": 1, "created_at": 0, "secret": b""})  # fmt: skip
        seq = tx.insert("event", {"type": "webhook.test", "occurred_at": 0})
        for id_, state in (("d-1", "pending"), ("d-2", "delivered")):
            delivery = tx.insert("delivery", {"id": id_, "endpoint_id": "e-1", "event_seq": seq,
                                              "state": state, "due_at": 60_000})  # fmt: skip
            for n, (outcome, status) in enumerate([("timeout", None), ("http_500", 500)], 1):
                tx.insert("attempt", {"delivery_seq": delivery, "n": n, "at": n * 1000,
                                      "duration_ms": 7, "phase": "done", "outcome": outcome,
                                      "http_status": status, "charged": 1})  # fmt: skip

    pending, delivered = box.json_lines("deliveries", "--environment", "live")

    assert pending == {
        "id": "d-1",
        "event": seq,
        "type": "webhook.test",
        "endpoint": "e-1",
        "state": "pending",
        "attempts": [
            {"at": "1970-01-01T00:00:01.000Z", "error": "timeout", "durationMs": 7},
            {"at": "1970-01-01T00:00:02.000Z", "status": 500, "durationMs": 7},
        ],
        "nextAttemptAt": "1970-01-01T00:01:00.000Z",
    }
    assert (delivered["state"], delivered["nextAttemptAt"]) == ("delivered", None)
    assert box.json_lines("deliveries", "--environment", "test") == []
