"""The portal offers a newer signed release, and the owner installs it."""

from contextlib import asynccontextmanager
from pathlib import Path
from runpy import run_path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.commands import service
from appliance.release import (
    HEAD_BYTES,
    OUTCOMES,
    REQUEST,
    UpdateRecord,
    read_update_record,
    write_update_record,
)
from appliance.staff.audit_log import list_audit_entries
from appliance.webhooks.client import OwnAuthority
from tests.promises.webhooks.test_certificates import Certificate
from web.portal import update
from web.portal.update import RELEASES

make_release = run_path(str(Path(__file__).parents[3] / "packaging" / "release.py"))["make_release"]
KEY, STRANGER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
PART = "/portal/box/update"
BUTTON = f'action="{PART}"'
POLLS = 'hx-trigger="every'


@pytest.fixture(scope="module")
def authority():
    return Certificate("Own authority", authority=True)


class Site:
    """Serve `content` with `status` at any https address, and count the requested bytes."""

    def __init__(self):
        self.content, self.status, self.requests = b"", 200, 0

    async def answer(self, _request):
        self.requests += 1
        return web.Response(status=self.status, body=self.content)

    @asynccontextmanager
    async def at(self, certificate):
        app = web.Application()
        app.router.add_get("/{path:.*}", self.answer)
        server = TestServer(app, scheme="https")
        await server.start_server(ssl=certificate.context())
        try:
            self.url = f"https://localhost:{server.port}/venuebox.release"
            yield self
        finally:
            await server.close()


@pytest.fixture
async def site(running, authority, tmp_path, monkeypatch):
    """The update site of a box of version 1.0 that runs under systemd."""
    monkeypatch.setattr(service, "UNIT", tmp_path / "venuebox.service")
    path = service.make_update_units(tmp_path, "/usr/bin/venuebox")["venuebox-update.path"]
    (tmp_path / "venuebox-update.path").write_text(path, "utf-8")
    async with Site().at(Certificate("localhost", issuer=authority)) as found:
        found.content = make_release(b"#" * HEAD_BYTES, KEY, version="1.1", notes="Less <noise>")
        watch = running.app[RELEASES]
        watch.url, watch.installed = found.url, "1.0"
        watch.key, watch.trust = KEY.public_key(), OwnAuthority(authority.pem)
        yield found


def requested(root):
    path = root / REQUEST
    return path.read_text("utf-8") if path.exists() else None


async def test_the_owner_can_install_a_newer_release(running, site, tmp_path, owner):
    page = (await owner.get("/portal/box?tab=version"))[1]
    assert BUTTON not in page  # the page does not wait for the site
    part = (await owner.get(PART))[1]
    assert BUTTON in part
    assert "Less &lt;noise&gt;" in part
    status, _, headers = await owner.post(PART)
    assert (status, headers["Location"]) == (303, "/portal/box?tab=version")
    assert requested(tmp_path) == site.url
    record = read_update_record(tmp_path)
    assert (record.stage, record.at) == ("asked", running.clock.now())
    [entry, *_] = await running.live.database.read(list_audit_entries, 1, before=2**53)
    assert (entry.actor, entry.what) == (f"staff:{owner.id}", "update_requested")
    assert POLLS in (await owner.get("/portal/box?tab=version"))[1]
    assert site.requests == 1  # the box asks again after ten minutes


async def test_only_the_owner_can_install_a_release(site, tmp_path, owner, manager):
    part = (await manager.get(PART))[1]
    assert "1.1" in part
    assert BUTTON not in part
    assert (await manager.post(PART))[0] == 403
    assert (await owner.post(PART, **{"Sec-Fetch-Site": "cross-site"}))[0] == 403
    assert requested(tmp_path) is None


@pytest.mark.parametrize(
    ("key", "changes", "has_trouble"),
    [
        (STRANGER, {"version": "1.1"}, True),
        (KEY, {"version": "1.1", "machine": "riscv"}, True),
        (KEY, {"version": "2.0", "minimum": "1.5"}, True),
        (KEY, {"version": "1.0"}, False),
        (KEY, {"version": "0.9"}, False),
    ],
)
async def test_only_a_newer_signed_release_is_offered(
    site, tmp_path, owner, key, changes, has_trouble
):
    site.content = make_release(b"#", key, **changes)
    part = (await owner.get(PART))[1]
    assert BUTTON not in part
    assert ('class="warning"' in part) is has_trouble
    await owner.post(PART)
    assert requested(tmp_path) is None


@pytest.mark.parametrize(("status", "content"), [(404, b"no"), (200, b""), (200, b"<p>" * 999)])
async def test_an_update_site_without_a_release_is_reported_and_asked_again_later(
    site, tmp_path, owner, status, content
):
    good, site.status, site.content = site.content, status, content
    part = (await owner.get(PART))[1]
    assert BUTTON not in part
    assert 'class="warning"' in part
    site.status, site.content = 200, good
    assert BUTTON in (await owner.get(PART))[1]


async def test_an_unreachable_update_site_is_reported(running, site, owner, monkeypatch):
    for url in ("https://localhost:9/a", "https://no-such-name.invalid/a"):
        running.app[RELEASES].url = url
        assert 'class="warning"' in (await owner.get(PART))[1]
    monkeypatch.setattr(update, "_DEADLINE_SECONDS", 0)
    running.app[RELEASES].url = site.url
    assert 'class="warning"' in (await owner.get(PART))[1]


async def test_without_a_systemd_unit_the_update_command_is_shown(site, tmp_path, owner):
    (tmp_path / "venuebox-update.path").unlink()
    part = (await owner.get(PART))[1]
    assert BUTTON not in part
    assert f"sudo venuebox update {site.url} --data {tmp_path}" in part
    await owner.post(PART)
    assert requested(tmp_path) is None


async def test_a_box_without_an_update_address_or_key_looks_for_no_updates(running, site, owner):
    watch = running.app[RELEASES]
    for url, key in (("", KEY.public_key()), (site.url, None)):
        watch.url, watch.key = url, key
        assert BUTTON not in (await owner.get(PART))[1]
    assert site.requests == 0


async def test_during_an_update_its_progress_is_shown_and_no_second_one_starts(
    running, site, tmp_path, owner
):
    now = running.clock.now()
    for stage in ("asked", "download", "backup", "start"):
        write_update_record(tmp_path, UpdateRecord(stage, now - 50_000))
        part = (await owner.get(PART))[1]
        assert POLLS in part
        assert BUTTON not in part
        await owner.post(PART)
        assert requested(tmp_path) is None
    for stage in OUTCOMES:
        write_update_record(tmp_path, UpdateRecord(stage, now, "1.1", "no room <b>"))
        part = (await owner.get(PART))[1]
        assert POLLS not in part
        assert ("no room &lt;b&gt;" in part) is (stage in {"failed", "stays"})


async def test_an_interrupted_update_can_be_started_again(running, site, tmp_path, owner):
    for stage, at in (("asked", running.clock.now() - 61_000), ("backup", 0)):
        write_update_record(tmp_path, UpdateRecord(stage, at))
        part = (await owner.get(PART))[1]
        assert POLLS not in part
        assert BUTTON in part
    await owner.post(PART)
    assert requested(tmp_path) == site.url


async def test_a_running_new_version_counts_as_installed_even_if_its_update_was_interrupted(
    running, site, tmp_path, owner
):
    parts = []
    for record in (UpdateRecord("start", 0, "1.0"), UpdateRecord("done", 0, "1.0")):
        write_update_record(tmp_path, record)
        parts.append((await owner.get(PART))[1])
    assert parts[0] == parts[1]
