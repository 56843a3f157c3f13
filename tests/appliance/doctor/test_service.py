import asyncio
import os
from dataclasses import replace

import pytest

from appliance.doctor.patient import ask_health
from appliance.settings_readers import ReaderSettings
from tests.conftest import Running, with_settings


@pytest.mark.parametrize(("answer", "status"), [(200, "ok"), (503, "fail"), (None, "fail")])
def test_a_box_that_runs_is_asked_whether_it_is_well(ward, answer, status):
    ward.on(ask=lambda _: answer)

    assert ward.status("box") == status


def test_a_box_that_is_off_is_a_word_and_is_not_asked(ward):
    (ward.root / "poke").unlink()

    def never(_url):
        raise AssertionError

    ward.on(ask=never)

    assert ward.status("box") == "warn"


def test_the_pipe_of_a_box_that_crashed_is_not_a_running_box(ward):
    (ward.root / "poke").unlink()
    os.mkfifo(ward.root / "poke")

    assert ward.status("box") == "warn"


def test_the_box_is_asked_where_it_listens_and_on_this_machine_alone(ward):
    asked = []
    ward.on(ask=asked.append)
    ward.patient.directory.remember_address("http://192.168.1.20:8099")
    ward.set(server={"port": 8080})

    ward.status("box")

    assert asked == ["http://127.0.0.1:8099/health", "http://127.0.0.1:8080/health"]


@pytest.mark.parametrize(
    ("host", "asked_for"),
    [("192.168.1.20", "192.168.1.20"), ("fd00::2", "[fd00::2]"), ("::", "127.0.0.1")],
)
def test_a_box_that_listens_at_one_address_is_asked_there(ward, host, asked_for):
    asked = []
    ward.on(ask=lambda url: asked.append(url) or 200)
    ward.set(server={"host": host, "port": 8080})

    assert ward.status("box") == "ok"
    assert asked == [f"http://{asked_for}:8080/health"]


def test_one_that_was_told_so_at_its_start_is_asked_there_while_the_address_is_the_machines(
    ward, monkeypatch
):
    asked = []
    monkeypatch.setattr("appliance.doctor.service.own_addresses", lambda: ["192.168.1.20"])
    ward.on(ask=lambda url: asked.append(url) or (200 if "192" in url else None))
    ward.patient.directory.remember_address("http://192.168.1.20:8099")
    ward.set(server={"port": 8080})

    assert ward.status("box") == "ok"
    assert asked == ["http://127.0.0.1:8099/health", "http://192.168.1.20:8099/health"]


async def test_the_box_on_this_machine_is_really_asked(running: Running):
    base = f"http://127.0.0.1:{running.client.port}"

    assert await asyncio.to_thread(ask_health, f"{base}/health") == 200

    running.live.database._writer._broken = True
    running.clock.advance(2)
    assert await asyncio.to_thread(ask_health, f"{base}/health") == 503


def test_nobody_at_home_is_no_answer(unused_tcp_port):
    assert ask_health(f"http://127.0.0.1:{unused_tcp_port}/health") is None


@pytest.mark.parametrize(
    ("app_url", "status"),
    [("", "warn"), ("http://192.168.1.20:8080", "warn"), ("http://127.0.0.1:8080", "ok"),
     ("http://localhost:8080", "ok"), ("https://box.example", "ok")],
)  # fmt: skip
def test_the_address_that_guests_are_given(ward, app_url, status):
    ward.set(server={"app_url": app_url})

    assert ward.status("settings") == status


def test_settings_that_cannot_be_read_are_a_failure_and_stop_nothing_else(ward):
    ward.become(settings="server.port is 'x': a whole number is allowed")

    found = ward.find("settings")

    assert found.status == "fail"
    assert "server.port" in found.finding.en
    assert ward.status("mail") is None
    assert ward.status("box") == "fail"  # nobody knows where it listens


def with_readers(ward, *readers):
    ward.become(settings=replace(with_settings(), readers=readers))


def a_terminal(ward, name):
    ward.write("INSERT INTO terminal (id, name, created_at) VALUES (:name, :name, 0)", name=name)


def test_readers_that_are_there_are_well(ward, tmp_path):
    device = tmp_path / "ttyACM0"
    device.touch()
    a_terminal(ward, "Porte 1")
    with_readers(ward, ReaderSettings("serial", "Porte 1", device=str(device)),
                 ReaderSettings("tcp", "Porte 1", port=4000))  # fmt: skip

    assert ward.status("readers") == "ok"


def test_a_reader_that_is_not_plugged_in_is_named(ward):
    a_terminal(ward, "Porte 1")
    with_readers(ward, ReaderSettings("serial", "Porte 1", device="/dev/no-such-scanner"))

    found = ward.find("readers")

    assert found.status == "fail"
    assert "/dev/no-such-scanner" in found.finding.en


def test_a_reader_whose_terminal_does_not_exist_is_named(ward):
    with_readers(ward, ReaderSettings("tcp", "Porte 9", port=4000))

    found = ward.find("readers")

    assert found.status == "fail"
    assert "Porte 9" in found.finding.en
