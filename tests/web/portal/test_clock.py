"""A clock that leapt: the owner reads what the machine says, and by naming the day confirms it."""

from appliance.store.conditions import Condition, list_conditions, put_condition
from appliance.store.security_log import list_security_entries
from tests.web.portal.people import a_person


async def leap(running):
    """The box has noted it, in each environment."""
    for environment in running.box.environments:
        leapt = Condition("clock_leapt", "", running.clock.now(), "the clock leapt")
        await environment.database.write(put_condition, leapt)


async def names_of_conditions(running):
    found = [await e.database.read(list_conditions) for e in running.box.environments]
    return [condition.name for conditions in found for condition in conditions]


async def test_an_owner_who_names_the_day_of_the_machine_lets_things_expire_again(running):
    await leap(running)
    owner = await a_person(running)
    _, text, _ = await owner.get("/portal/box")
    assert "says that it is: <bdi>Saturday, 21 November 2026 19:00</bdi>" in text
    assert 'action="/portal/box/clock"' in text

    status, _, headers = await owner.post("/portal/box/clock", {"day": "2026-11-21"})

    assert (status, headers["Location"]) == (303, "/portal/box?note=clock-confirmed")
    assert await names_of_conditions(running) == []
    _, text, _ = await owner.get(headers["Location"])
    assert "The clock of the box is right" in text
    assert "/portal/box/clock" not in text
    newest = (await running.live.database.read(list_security_entries, 1))[0]
    assert (newest.what, newest.actor) == ("clock_confirmed", f"staff:{owner.id}")


async def test_another_day_confirms_nothing_and_says_so_at_the_field(running):
    await leap(running)
    owner = await a_person(running)
    for day in ("2027-11-21", "2026-11-22", "", "now"):
        status, text, _ = await owner.post("/portal/box/clock", {"day": day})

        assert status == 422
        assert "clock_leapt" in await names_of_conditions(running)
        assert 'aria-invalid="true"' in text
        assert "The box tells another day" in text


async def test_a_manager_is_told_who_can_confirm_it(running):
    await leap(running)
    manager = await a_person(running, "manager")

    _, text, _ = await manager.get("/portal/box")

    assert "the owner can say so here" in text
    assert 'action="/portal/box/clock"' not in text
    assert (await manager.post("/portal/box/clock", {"day": "2026-11-21"}))[0] == 403
    assert "clock_leapt" in await names_of_conditions(running)
