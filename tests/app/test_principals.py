"""Every route declares its principal, and every combination of caller and route is checked."""

import re

import pytest

from appliance.door.terminals import issue_terminal
from appliance.http.request import PRINCIPALS
from terminal_bridge.api import TERMINAL_ROUTES
from tests.app.portal.people import a_person
from tests.conftest import Running
from web.portal.routes import PORTAL_ROUTES
from web.routes import PARTNER_ROUTE_TABLE

ROLES = ("owner", "manager", "host", "door")
UNKNOWN_ID = "01890000-0000-7000-8000-000000000000"


def a_path(pattern: str) -> str:
    return re.sub(r"\{[^}]*\}", UNKNOWN_ID, pattern)


def test_every_route_declares_who_may_call_it(running):
    routes = {
        (route.method, route.resource.canonical)
        for route in running.app.router.routes()
        if route.resource is not None
    }
    declared = {
        (method, re.sub(r"\{(\w+):[^}]*\}", r"{\1}", path))
        for method, path in running.app[PRINCIPALS]
    }

    assert routes == declared


@pytest.mark.parametrize("environment", ["", "/test"])
async def test_staff_routes_need_a_session(running, environment):
    for route in PORTAL_ROUTES:
        if environment and route.live_only:
            continue
        path = environment + a_path(route.path)
        async with running.client.request(
            route.method, path, allow_redirects=False, headers={"Sec-Fetch-Site": "same-origin"}
        ) as response:
            assert response.status == 303, (route.method, path)
            assert response.headers["Location"].startswith("/portal/sign-in?next=")


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_can_call_exactly_its_own_routes(running, role):
    person = await a_person(running, role)
    for route in PORTAL_ROUTES:
        if route.path in {"/portal/sign-out", "/portal/account/password"}:  # these end the session
            continue
        may = ROLES.index(role) <= ROLES.index(route.role)
        environments = ("",) if route.live_only else ("", "/test")
        for environment in environments:
            path = environment + a_path(route.path)
            ended_by = {"Accept": "text/html"}
            status, text, _ = await person.send(route.method, path, headers=ended_by)

            refused = status == 403 and "This page requires the role" in text
            assert refused is not may, (route.method, path, status)


async def test_keys_and_terminals_cannot_open_the_portal(running):
    _, terminal = await running.live.database.write(issue_terminal, "Front door")
    for token in (running.live_key, terminal):
        for route in PORTAL_ROUTES:
            async with running.client.request(
                route.method,
                a_path(route.path),
                headers={"Authorization": f"Bearer {token}", "Sec-Fetch-Site": "same-origin"},
                allow_redirects=False,
            ) as response:
                assert response.status == 303


async def test_a_session_cannot_call_the_partner_interface_or_the_door(running):
    person = await a_person(running, "owner")
    for route in PARTNER_ROUTE_TABLE:
        status, _, _ = await person.send(route.method, a_path(route.path))
        assert status == 401, route
    for method, path, _ in TERMINAL_ROUTES:
        if path != "/terminal/v1/pair":
            status, _, _ = await person.send(method, a_path(path))
            assert status == 401, path


FOREIGN = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
)
# Programs send these: an email client unsubscribes, a webhook reaches an echo receiver.
SENT_BY_PROGRAMS = re.compile(r"(/test)?/no-reminders/.*|/test/echo/.*")


def changing(running: Running, *kinds: str) -> list[tuple[str, str]]:
    """Return the routes that change something and are declared for one of `kinds`."""
    return [
        (method, a_path(path))
        for (method, path), principal in running.app[PRINCIPALS].items()
        if method in {"POST", "PUT", "PATCH", "DELETE"} and principal.kind in kinds
    ]


@pytest.mark.parametrize("foreign", FOREIGN)
async def test_a_cross_site_form_is_refused_for_every_signed_in_role(running, foreign):
    cookie = {"Cookie": (await a_person(running, "owner")).headers["Cookie"]}
    for method, path in changing(running, "staff"):
        async with running.client.request(method, path, headers={**cookie, **foreign}) as response:
            assert response.status == 403, path


@pytest.mark.parametrize("foreign", FOREIGN)
async def test_a_cross_site_form_is_refused_on_pages_without_sign_in(running, foreign):
    routes = [
        route
        for route in changing(running, "anybody", "terminal")
        if not SENT_BY_PROGRAMS.fullmatch(route[1])
        and route[1] != "/book"  # /book is closed, /test/book is open
    ]

    assert len(routes) > 20
    for method, path in routes:
        async with running.client.request(method, path, data=b"", headers=foreign) as response:
            assert response.status == (401 if "/terminal/" in path else 403), path
