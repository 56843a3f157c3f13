import re

import pytest

from appliance.http.request import PRINCIPALS
from tests.conftest import running_box, with_settings


async def ask(running, host):
    async with running.client.get("/openapi.json", headers={"Host": host}) as response:
        return response.status, await response.text()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8080", "192.168.1.7", "[::1]:8080", "[fe80::1]", "localhost:1", "LOCALHOST",
     "box.example", "Box.Example:443", "box.example.", "riad-atlas.local", "riad-atlas.local:8080",
     "venue.lan"],
)  # fmt: skip
async def test_the_box_accepts_its_addresses_and_its_own_names_as_host(tmp_path, clock, host):
    settings = with_settings(server={"names": ("venue.lan",)})
    async with running_box(tmp_path, clock, settings) as running:
        assert (await ask(running, host))[0] == 200
        assert (await ask(running, host))[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "box.example.evil.example", "127.0.0.1.evil.example", "other.local",
     "localhost.evil.example:8080", "[::1", "2130706433", "a@127.0.0.1.evil", "a@127.0.0.1",
     "[fe80::1%eth0]", "[fe80::1%25a;script-src evil.example]", "127.0.0.1/../x", "localhost/",
     "localhost?x", "localhost#x", "localhost:", "localhost:x", "localhost:123456", "[localhost]",
     "[127.0.0.1]", "::1", "127.0.0.1,evil.example", "localhost:80:80", "box.example..",
     "\u0661\u0662\u0667.0.0.1", "localhost\\x", ".", "..", "[]", ":80"],
)  # fmt: skip
async def test_a_foreign_host_name_is_refused(running, host):
    status, text = await ask(running, host)
    assert status == 421
    assert "MISDIRECTED" in text
    assert "riad" not in text.lower()


@pytest.mark.parametrize("host", ["evil.example", "[fe80::1%a]", "a@127.0.0.1"])
async def test_no_route_answers_under_a_foreign_host_name(running, host):
    for method, path in running.app[PRINCIPALS]:
        known = re.sub(r"\{[^}]*\}", "01890000-0000-7000-8000-000000000000", path)
        async with running.client.request(method, known, headers={"Host": host}) as response:
            assert response.status == 421, (method, path)
