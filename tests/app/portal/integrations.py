"""Helpers for tests of the integrations pages: register endpoints, read deliveries."""

import re
from collections.abc import Awaitable, Callable

from tests.app.portal.people import Person
from tests.conftest import Running
from tests.waiting import until

ROOM = "/test/portal/integrations"
SECRET = re.compile(r"whsec_[\w-]{43}")


async def a_form(person: Person, path: str) -> dict[str, str]:
    """Return the hidden field `seen` of the first form on a page that has one."""
    _, text, _ = await person.get(path)
    found = re.search(r'name="seen" value="([^"]+)"', text)
    return {"seen": found[1]} if found else {}


async def register(person: Person, url: str, *events: str) -> tuple[str, str]:
    """Register an endpoint in the portal. Return the URL of its page and its secret."""
    form = [("url", url), *(("event", e) for e in events or ("webhook.test",))]
    status, text, headers = await person.post(f"{ROOM}/endpoints", form)
    assert status == 303, text
    _, text, _ = await person.get(headers["Location"])
    return headers["Location"], SECRET.search(text).group(0)


async def eventually(question: Callable[[], Awaitable[bool]]) -> None:
    """Repeat an HTTP request until its answer is true."""
    await until(question)


async def send_test(person: Person, page: str) -> str:
    """Send a test event. Return the URL of its delivery."""
    _, _, headers = await person.post(f"{page}/test", await a_form(person, page))
    return headers["Location"].partition("?")[0]


async def has(person: Person, path: str, words: str) -> bool:
    return words in (await person.get(path))[1]


async def die(running: Running) -> None:
    """Set every pending delivery of the test environment to dead."""

    def kill(tx):
        tx.execute(
            """UPDATE delivery SET state = 'dead', finished_at = :now, attempts = 6
               WHERE state = 'pending'""",
            {"now": tx.now},
        )

    await running.test.database.write(kill)
