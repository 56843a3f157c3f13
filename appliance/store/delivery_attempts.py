"""One delivery with every attempt at it that is still kept."""

from dataclasses import dataclass

from appliance.model.delivery import DueDelivery
from appliance.store.connection import Reader
from appliance.store.delivery_pages import ListedDelivery, get_listed_delivery
from appliance.store.failed_requests import find_failed_request

_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, as the portal tells it. `charged` 0: it failed by our own fault."""

    n: int
    at: int
    duration_ms: int
    phase: str
    outcome: str
    http_status: int | None
    remote_address: str | None
    excerpt: str | None
    charged: int  # 1 or 0
    body_sha256: bytes | None


@dataclass(frozen=True, slots=True)
class DeliveryStory:
    """A delivery, its latest attempts (the newest first), and the request that failed last."""

    delivery: ListedDelivery
    due: DueDelivery
    attempts: tuple[Attempt, ...]
    failed_request: tuple[int, bytes] | None


def get_delivery_story(reader: Reader, delivery_id: str) -> DeliveryStory:
    """The delivery of that id, or NotFound."""
    seq, found = get_listed_delivery(reader, delivery_id)
    rows = reader.rows(
        """SELECT n, at, duration_ms, phase, outcome, http_status, remote_address, excerpt,
                  charged, body_sha256
           FROM attempt WHERE delivery_seq = :seq ORDER BY n DESC LIMIT :limit""",
        {"seq": seq, "limit": _SHOWN},
    )
    attempts = tuple(Attempt(*row) for row in rows)
    due = DueDelivery(
        seq, found.id, 0, found.event_type, found.reservation_id, found.occurred_at, found.replays
    )
    return DeliveryStory(found, due, attempts, find_failed_request(reader, delivery_id))
