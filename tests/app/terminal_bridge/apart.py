"""What a terminal sends that decided by itself while the box was out of reach."""

from itertools import count
from typing import Any

_numbers = count(1)


def a_scan(**members: Any) -> dict[str, Any]:
    """A guest whom the terminal let in at 18:50, ten minutes before the box hears of it."""
    return {
        "scanId": f"apart-{next(_numbers)}",
        "at": "2026-11-21T18:50:00.000Z",
        "shown": "checked_in",
        **members,
    }


async def sync(door, *scans: dict[str, Any], **members: Any) -> list[dict[str, Any]]:
    """The results of one call."""
    status, answer = await door.call("POST", "/sync", {"scans": list(scans), **members})
    assert status == 200, answer
    return answer["results"]
