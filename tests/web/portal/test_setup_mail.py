"""The mail step: a password is typed once, and none is saved that nobody knows."""

import pytest

from appliance.model.letter import Outcome
from appliance.settings import read_settings
from tests.web.portal.people import a_person

MAIL = "/portal/setup/mail"
TYPED = {
    "host": "smtp.example.com", "port": "465", "security": "tls", "user": "box",
    "sender": "box@example.com", "recipient": "yasmine@example.com",
}  # fmt: skip


@pytest.fixture
async def owner(running):
    return await a_person(running)


@pytest.fixture
def tried(monkeypatch):
    """The passwords that went to a mail server."""
    passwords = []

    async def send(mail, *_):
        passwords.append((mail.host, mail.password))
        return Outcome("accepted", None)

    monkeypatch.setattr("web.portal.box.letters.send_trial", send)
    return passwords


def saved(running):
    path = running.live.database.path.parent / "settings.toml"
    return read_settings(path, {}).mail if path.exists() else None


async def test_what_was_tried_is_saved_without_typing_it_again(running, owner, tried):
    _, page, _ = await owner.post(MAIL, {**TYPED, "password": "thé", "do": "try"})
    assert "The one you tried is kept" in page
    assert "thé" not in page
    await owner.post(MAIL, {**TYPED, "password": "", "do": "try"})

    status, _, _ = await owner.post(MAIL, {**TYPED, "password": "", "do": "save"})

    assert status == 303
    assert tried == [("smtp.example.com", "thé")] * 2
    assert saved(running).password == "thé"


@pytest.mark.parametrize(("host", "seconds"), [("evil.example", 0), ("smtp.example.com", 1801)])
async def test_it_goes_to_that_server_alone_and_is_forgotten_after_half_an_hour(
    running, owner, tried, host, seconds
):
    await owner.post(MAIL, {**TYPED, "password": "thé", "do": "try"})
    running.clock.advance(seconds)

    status, page, _ = await owner.post(MAIL, {**TYPED, "host": host, "password": "", "do": "save"})

    assert status == 400
    assert "Nothing was saved: no password is known" in page
    assert saved(running) is None or saved(running).host == ""


async def test_another_person_does_not_get_it(running, owner, tried):
    await owner.post(MAIL, {**TYPED, "password": "thé", "do": "try"})
    other = await a_person(running, name="Karim")

    status, _, _ = await other.post(MAIL, {**TYPED, "password": "", "do": "save"})

    assert status == 400
