"""The room of integrations says where one is, and nothing that is not so."""

import re
import socket

import pytest

from tests.builders import a_body, a_key
from tests.conftest import with_settings
from tests.web.portal.integrations import (
    ROOM,
    die,
    eventually,
    has,
    register,
    send_test,
)
from tests.web.portal.people import a_person

CURRENT = re.compile(r'<a href="[^"]*" aria-current="page">([^<]+)</a>')


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0})


@pytest.mark.parametrize(
    ("path", "tab"),
    [
        ("", "Keys and endpoints"),
        ("/keys/new", "Keys and endpoints"),
        ("/endpoints/new", "Keys and endpoints"),
        ("/deliveries", "Deliveries"),
        ("/replay", "Deliveries"),
        ("/warnings", "Warnings"),
    ],
)
async def test_each_page_stands_under_its_tab(running, path, tab):
    person = await a_person(running, "manager")

    _, text, _ = await person.get(f"{ROOM}{path}")

    assert CURRENT.findall(text)[-1:] == [tab]


async def test_of_a_delivery_that_never_arrived_nobody_says_that_it_did(running):
    person = await a_person(running, "manager")
    with socket.socket() as silent:  # it has the port, and listens to nobody
        silent.bind(("127.0.0.1", 0))
        page, _ = await register(person, f"http://127.0.0.1:{silent.getsockname()[1]}/")
        delivery = await send_test(person, page)
        await eventually(lambda: has(person, delivery, "Attempt 1"))
    await die(running)

    _, text, _ = await person.get(delivery)

    assert "it has not arrived yet" in text
    assert "What was delivered" not in text


async def test_a_warning_names_the_evening_in_words(running):
    person = await a_person(running, "manager")
    key = await a_key(running.test)
    for guests in (2, 3):
        body = a_body(guests=guests)
        await running.call("POST", "/test/v1/reservations", json=body, key=key)

    _, text, _ = await person.get(f"{ROOM}/warnings")

    assert "T1 · <bdi>Sat, 21 Nov 2026</bdi> · 19:30" in text
