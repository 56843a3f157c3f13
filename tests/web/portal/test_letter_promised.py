"""What a host is told of the letter that they ticked."""

import pytest

from tests.conftest import with_settings
from tests.web.portal.people import a_person
from tests.web.portal.test_reservations_new import NEW, a_form

WAITS = "The box has no mail server yet: letters wait until it has one."
TICKED = {"customer_email": "karim@guest.example", "letter": "1"}


@pytest.fixture
async def host(running):
    return await a_person(running, "host")


async def after(host, path, **changes):
    """The page on which a host ends up who wrote that down."""
    _, _, headers = await host.post(path, a_form(**changes))
    _, page, _ = await host.get(headers["Location"])
    return page


async def test_a_letter_to_nowhere_is_refused_and_the_tick_stays(host):
    status, page, _ = await host.post(NEW, a_form(letter="1"))

    assert (status, "Please write the email that the letter goes to" in page) == (400, True)
    assert 'name="letter" value="1" checked' in page


async def test_without_a_mail_server_nobody_is_told_that_it_is_on_its_way(host):
    _, form, _ = await host.get(NEW)

    page = await after(host, NEW, **TICKED)

    assert WAITS in form
    assert "The letter waits: the box has no mail server yet." in page
    assert "on its way" not in page


async def test_the_test_environments_own_outbox_is_always_there(host):
    _, form, _ = await host.get(f"/test{NEW}")

    page = await after(host, f"/test{NEW}", **TICKED)

    assert WAITS not in form
    assert "the letter to the guest is on its way" in page


class TestWithAMailServer:
    @pytest.fixture
    def settings(self):
        return with_settings(
            api={"unauthenticated_per_minute": 100_000},
            mail={"host": "127.0.0.1", "port": 9, "sender": "riad@mail.example"},
        )

    async def test_the_letter_is_on_its_way(self, host):
        page = await after(host, NEW, **TICKED)

        assert "the letter to the guest is on its way" in page
