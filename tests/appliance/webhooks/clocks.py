"""A clock that is set, a box that bears with it for ten minutes, and what came of it."""

import asyncio

from tests.conftest import with_settings

A_YEAR_ON, A_YEAR_BACK = "2027-11-21T19:00:00Z", "2025-11-21T19:00:00Z"
GRACE = 600
GRACED = with_settings(
    webhooks={
        "allow_networks": ("127.0.0.0/8",), "allow_http": True,
        "clock_grace_minutes": GRACE // 60,
    }
)  # fmt: skip


async def nothing_more(receiver, count):
    await asyncio.sleep(0.05)
    assert len(receiver.requests) == count


def due_at(world):
    [(instant,)] = world.rows("SELECT due_at FROM delivery")
    return instant


def set_clock(clock, surroundings, instant, *, told=True):
    """The clock is set; the kernel tells whoever asked to be told."""
    clock.set(instant)
    for tell in list(surroundings.watching_clock) if told else []:
        tell()
