"""The scans that a terminal uploads after it decided them while the box was unreachable."""

from itertools import count
from typing import Any

_numbers = count(1)


def a_scan(**members: Any) -> dict[str, Any]:
    """Return a scan of a guest admitted offline at 18:50, ten minutes before the upload."""
    return {
        "scanId": f"apart-{next(_numbers)}",
        "at": "2026-11-21T18:50:00.000Z",
        "shown": "checked_in",
        **members,
    }


async def sync(door, *scans: dict[str, Any], **members: Any) -> list[dict[str, Any]]:
    """Upload scans in one call and return the results."""
    status, answer = await door.call("POST", "/sync", {"scans": list(scans), **members})
    assert status == 200, answer
    return answer["results"]
