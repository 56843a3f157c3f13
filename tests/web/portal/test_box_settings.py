"""What the owner switches in the room of the box, and the restart that brings it into force."""

import pytest

from appliance.settings import read_settings
from tests.conftest import with_settings
from tests.web.portal.people import a_person
from web.portal.context import RESTART

PATH = "/portal/box/settings"
FORM = {
    "booking.enabled": "1",
    "guest.cancel_hours": "6",
    "mail.reminder_hours": "0",
    "door.early_minutes": "45",
    "retention.contact_days": "7",
}
BUTTON = 'action="/portal/box/restart"'


@pytest.fixture
def settings():
    return with_settings()


@pytest.fixture
async def owner(running):
    running.app._state[RESTART] = list
    return await a_person(running)


def found_in(path):
    settings = read_settings(path / "settings.toml", {})
    return {name: getattr(getattr(settings, name.split(".")[0]), name.split(".")[1])
            for name in FORM}  # fmt: skip


async def noted(running):
    sql = "SELECT actor, detail FROM security_log WHERE what = 'settings_changed'"
    return await running.live.database.read(lambda reader: list(reader.rows(sql)))


async def test_the_owner_switches_them_and_is_offered_the_restart(running, owner, tmp_path):
    assert BUTTON not in (await owner.get("/portal/box"))[1]

    status, _, headers = await owner.post(PATH, FORM)

    assert (status, headers["Location"]) == (303, "/portal/box?note=saved-for-later")
    assert found_in(tmp_path) == {
        "booking.enabled": True, "guest.cancel_hours": 6, "mail.reminder_hours": 0,
        "door.early_minutes": 45, "retention.contact_days": 7,
    }  # fmt: skip
    _, page, _ = await owner.get("/portal/box")
    assert BUTTON in page
    assert (
        'name="guest.cancel_hours" type="number" inputmode="numeric" min="0" max="720" value="6"'
        in page
    )
    [(actor, detail)] = await noted(running)
    assert actor == f"staff:{owner.id}"
    assert all(name in detail for name in FORM)


async def test_what_is_set_back_needs_no_restart_and_what_is_not_changed_is_not_written(
    running, owner, tmp_path
):
    defaults = {name: str(int(value)) for name, value in found_in(tmp_path).items()}
    del defaults["booking.enabled"]

    assert (await owner.post(PATH, defaults))[2]["Location"] == "/portal/box?note=saved"
    assert not (tmp_path / "settings.toml").exists()
    assert await noted(running) == []
    await owner.post(PATH, {**defaults, "door.early_minutes": "5"})
    assert (await owner.post(PATH, defaults))[2]["Location"] == "/portal/box?note=saved"
    assert BUTTON not in (await owner.get("/portal/box"))[1]
    assert [detail for _, detail in await noted(running)] == ['{"name":"door.early_minutes"}'] * 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("guest.cancel_hours", "721"), ("mail.reminder_hours", "-1"), ("door.early_minutes", "9999"),
     ("retention.contact_days", "0"), ("guest.cancel_hours", "two")],
)  # fmt: skip
async def test_a_value_that_is_not_allowed_is_said_beside_its_field(owner, tmp_path, name, value):
    status, page, _ = await owner.post(PATH, {**FORM, name: value})

    assert status == 400
    field = page[page.index(f'name="{name}"') :]
    assert f'value="{value}"' in field[:200]
    assert 'aria-invalid="true"' in field[: field.index("</label>")]
    assert not (tmp_path / "settings.toml").exists()


async def test_a_file_edited_by_hand_needs_a_restart_unless_it_would_stop_it(owner, tmp_path):
    file = tmp_path / "settings.toml"

    for text, needed in (
        ("[api]\nrate_limit_per_minute = 61\n", True),
        ("[api]\nrate_limit_per_minute = 60\n", False),  # as it is in force
        ("[api]\nrate_limit_per_minute = 0\n", False),
        ("[api\n", False),
    ):
        file.write_text(text)
        _, page, _ = await owner.get("/portal/box?again=1")
        assert (BUTTON in page) is needed, text


async def test_a_manager_reads_them_and_changes_nothing(running, owner, tmp_path):
    manager = await a_person(running, "manager")

    assert (await manager.post(PATH, FORM))[0] == 403
    _, page, _ = await manager.get("/portal/box")

    assert (f'action="{PATH}"' in page, "disabled" in page) == (False, True)
    assert not (tmp_path / "settings.toml").exists()


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_last_page_of_the_setup_tells_whether_guests_can_book(owner, tmp_path, enabled):
    (tmp_path / "settings.toml").write_text(f"[booking]\nenabled = {str(enabled).lower()}\n")

    _, page, _ = await owner.get("/portal/setup/ready")

    assert ("https://box.example/book" in page) is enabled
    assert ('href="/portal/box#settings"' in page) is not enabled
