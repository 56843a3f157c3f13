"""Another language shows the same again: the evening, the filters, the page."""

import html
import re

import pytest

from tests.web.portal.people import a_person


@pytest.mark.parametrize(
    ("shown", "back"),
    [
        ("/portal/tonight?date=2026-12-31", "/portal/tonight?date=2026-12-31"),
        ("/test/portal/tonight?date=2026-12-31&lang=ar", "/test/portal/tonight?date=2026-12-31"),
        ("/portal/reservations?note=saved&from=&q=%C3%89lo%C3%AFse+%26+%D8%B3&page=2",
         "/portal/reservations?from=&q=%C3%89lo%C3%AFse+%26+%D8%B3&page=2"),
        ("/portal/tonight?note=saved", "/portal/tonight"),
    ],
)  # fmt: skip
async def test_the_switch_keeps_what_the_page_shows(running, shown, back):
    host = await a_person(running, "host")
    _, page, _ = await host.get(shown)
    action = html.unescape(re.search(r'action="(/portal/language[^"]*)"', page)[1])

    status, _, headers = await host.post(action, {"language": "fr"})

    assert (status, headers["Location"]) == (303, back)
    _, page, _ = await host.get(back)
    assert '<html lang="fr"' in page
