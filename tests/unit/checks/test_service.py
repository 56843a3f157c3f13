import asyncio
import os
from dataclasses import replace

import pytest

from appliance.checks.check import ask_health
from appliance.core.i18n import load_languages
from appliance.core.scanner_settings import ReaderSettings
from tests.conftest import Running, with_settings
from tests.unit.checks.conftest import english


@pytest.mark.parametrize(("answer", "status"), [(200, "ok"), (503, "fail"), (None, "fail")])
def test_a_running_box_is_asked_for_its_health(ward, answer, status):
    ward.on(ask=lambda _: answer)

    assert ward.status("box") == status


@pytest.mark.parametrize("has_crashed", [False, True])
def test_a_stopped_or_crashed_box_is_a_warning_and_is_not_asked(ward, has_crashed):
    (ward.root / "poke").unlink()
    if has_crashed:
        os.mkfifo(ward.root / "poke")

    def never(_url):
        raise AssertionError

    ward.on(ask=never)

    assert ward.status("box") == "warn"


def test_the_remedy_for_a_stopped_box_depends_on_whether_systemd_runs_it(ward, tmp_path):
    (ward.root / "poke").unlink()
    by_hand, unit = tmp_path / "none.service", tmp_path / "venuebox.service"
    unit.touch()

    for place, command in ((by_hand, "venuebox serve"), (unit, "systemctl start venuebox")):
        ward.on(unit=place)
        assert command in ward.find("box").remedy.text(load_languages().get("en"))


def test_the_health_request_goes_to_the_configured_port_on_this_machine(ward):
    asked = []
    ward.on(ask=asked.append)
    ward.context.directory.remember_address("http://192.168.1.20:8099")
    ward.set(server={"port": 8080})

    ward.status("box")

    assert asked == ["http://127.0.0.1:8099/health", "http://127.0.0.1:8080/health"]


@pytest.mark.parametrize(
    ("host", "asked_for"),
    [("192.168.1.20", "192.168.1.20"), ("fd00::2", "[fd00::2]"), ("::", "127.0.0.1")],
)
def test_a_box_that_listens_on_one_address_is_asked_there(ward, host, asked_for):
    asked = []
    ward.on(ask=lambda url: asked.append(url) or 200)
    ward.set(server={"host": host, "port": 8080})

    assert ward.status("box") == "ok"
    assert asked == [f"http://{asked_for}:8080/health"]


async def test_the_health_request_reaches_a_real_box(running: Running):
    base = f"http://127.0.0.1:{running.client.port}"

    assert await asyncio.to_thread(ask_health, f"{base}/health") == 200

    running.live.database._writer._broken = True
    running.clock.advance(2)
    assert await asyncio.to_thread(ask_health, f"{base}/health") == 503


@pytest.mark.parametrize(
    ("app_url", "status"),
    [("", "warn"), ("http://192.168.1.20:8080", "warn"), ("http://127.0.0.1:8080", "ok"),
     ("http://localhost:8080", "ok"), ("https://box.example", "ok")],
)  # fmt: skip
def test_the_address_for_guests_is_checked(ward, app_url, status):
    ward.set(server={"app_url": app_url})

    assert ward.status("settings") == status


def test_unreadable_settings_are_a_failure_and_the_other_checks_still_run(ward):
    ward.become(settings="server.port is 'x', but must be a whole number")

    assert ward.status("settings") == "fail"
    assert ward.status("mail") is None
    assert ward.status("box") == "fail"  # the address of the box is unknown


@pytest.mark.parametrize(
    ("device", "terminal", "status"),
    [("ttyACM0", "Porte 1", "ok"), ("unplugged", "Porte 1", "fail"), ("ttyACM0", "none", "fail")],
)
def test_the_check_passes_with_connected_readers_and_fails_with_an_unusable_one(
    ward, tmp_path, device, terminal, status
):
    (tmp_path / "ttyACM0").touch()
    ward.write("INSERT INTO terminal (id, name, created_at) VALUES ('a', 'Porte 1', 0)")
    readers = (ReaderSettings("serial", "Porte 1", device=str(tmp_path / device)),
               ReaderSettings("tcp", terminal, port=4000))  # fmt: skip
    ward.become(settings=replace(with_settings(), readers=readers))

    assert ward.status("readers") == status


GOOD = {"host": "mail.example", "sender": "riad@box.example", "user": "u", "password": "p"}


@pytest.mark.parametrize(
    ("changes", "status"),
    [({}, "ok"), ({"host": ""}, "warn"), ({"password": ""}, "fail"),
     ({"user": "", "password": ""}, "ok"), ({"security": "none"}, "warn")],
)  # fmt: skip
def test_incomplete_mail_settings_are_a_warning(ward, changes, status):
    ward.set(mail={**GOOD, **changes})

    assert ward.status("mail") == status


def an_endpoint(ward, *, failures=0, outcome="delivered", active=1):
    ward.write(
        """INSERT INTO endpoint (id, url, events, active, created_at, secret, failures_in_a_row,
               last_outcome)
           VALUES ('e', 'https://partner.example/hook', '[]', :active, 0, x'', :failures, :outcome)
        """,
        failures=failures, outcome=outcome, active=active,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "status"),
    [({}, "ok"), ({"failures": 1, "outcome": "timeout"}, "ok"),
     ({"failures": 5, "outcome": "http_500"}, "warn"),
     ({"failures": 1, "outcome": "blocked"}, "warn"),
     ({"failures": 9, "outcome": "http_500", "active": 0}, "ok")],
)  # fmt: skip
def test_an_endpoint_that_rejects_every_delivery_is_named(ward, endpoint, status):
    an_endpoint(ward, **endpoint)

    found = ward.find("endpoints")

    assert found.status == status
    assert ("https://partner.example/hook" in english(found)) == (status == "warn")


@pytest.mark.parametrize(
    ("state", "hours_ago", "status"),
    [("dead", 1, "warn"), ("dead", 24 * 8, "ok"), ("pending", 0, "ok"), ("pending", 2, "warn"),
     ("delivered", 1, "ok"), ("cancelled", 1, "ok")],
)  # fmt: skip
def test_dead_and_waiting_deliveries_are_counted(ward, state, hours_ago, status):
    an_endpoint(ward)
    at = ward.context.clock.now() - hours_ago * 3_600_000
    ward.write("INSERT INTO event (seq, type, occurred_at) VALUES (1, 'webhook.test', :at)", at=at)
    ward.write(
        """INSERT INTO delivery (id, endpoint_id, event_seq, state, due_at, finished_at)
           VALUES ('d', 'e', 1, :state, :at, :at)""",
        state=state, at=at,
    )  # fmt: skip

    assert ward.status("deliveries") == status
