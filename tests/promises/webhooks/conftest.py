"""Reuse the fixtures of tests/webhooks."""

from tests.webhooks.conftest import (  # noqa: F401 - fixtures are asked for by name
    change_outside,
    client,
    make_client,
    names,
    open_receiver,
    outside,
    receiver,
    settings,
    surroundings,
    timer,
    world,
)
