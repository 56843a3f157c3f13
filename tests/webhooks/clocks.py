"""Helpers for tests that set the clock of a box with a grace period of ten minutes."""

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
    """Set the clock; with `told`, the kernel reports it to the watchers."""
    clock.set(instant)
    for tell in list(surroundings.watching_clock) if told else []:
        tell()
