"""A command that fails prints one line on stderr and exits with its documented status."""

import io
import json
import os
import sys
import tarfile

import pyrage
import pytest
from pyrage import x25519

from web.main import main

LIVE = ("--environment", "live")
KEY = ("key", "create", *LIVE)


@pytest.mark.parametrize(
    "argv",
    [("key", "list"), (*KEY, "--name", "N"), ("terminal", "create", *LIVE, "--name", "N"),
     ("staff", "create", "--name", "N", "--role", "owner"), ("deliveries", *LIVE), ("doctor",),
     ("tls", "obtain"), ("service", "install")],
)  # fmt: skip
def test_commands_on_a_missing_box_create_nothing(program, monkeypatch, argv):
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # root alone installs a service

    assert "venuebox init" in program.complaint(*argv)

    assert not program.data.exists()


@pytest.mark.parametrize(
    "argv",
    [(), ("fly",), ("key",), ("serve", "--port", "65536"), KEY,
     ("key", "create", "--environment", "prod", "--name", "N"), (*KEY, "--name", " "),
     (*KEY, "--name", "N", "--scope", "everything"),
     (*KEY, "--name", "N", "--read-only", "--scope", "venue:read"),
     ("terminal", "create", *LIVE, "--name", "N", "--role", "boss"),
     ("staff", "create", "--name", "N", "--role", "king"), ("restore",),
     ("restore", "a.tar.age", "--latest"),
     ("backup", "--html", "kit.html"), ("backup", "--check"),
     ("backup", "kit", "--to", "/media/usb")],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_exits_with_status_2(box, argv):
    box.complaint(*argv, status=2)


@pytest.mark.parametrize(
    ("argv", "named"),
    [(("key", "revoke", "nope"), "nope"), (("staff", "reset", "Karim"), "Karim"),
     ((*KEY, "--name", "N", "--successor-of", "nope"), "nope"),
     (("tls", "obtain"), "acme.directory"),
     (("backup", "kit", "--html", "{tmp}/no/folder/kit.html"), "{tmp}/no/folder/kit.html"),
     (("backup", "kit", "--html", "{tmp}"), "{tmp}"),
     (("backup", "--to", "{tmp}/no/usb"), "{tmp}/no/usb")],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_an_unknown_id_is_named_in_the_error(box, tmp_path, argv, named):
    argv = [word.format(tmp=tmp_path) for word in argv]

    assert named.format(tmp=tmp_path) in box.complaint(*argv)

    assert box.json_lines("key", "list") == []


@pytest.mark.parametrize("argv", [("key", "list"), ("key", "revoke", "x"), ("deliveries", *LIVE)])
@pytest.mark.parametrize(
    ("harm", "told"),
    [("PRAGMA user_version = 0", "Start the box"), ("PRAGMA user_version = 99", "install"),
     (b"not a database" * 1000, "venuebox doctor"), (None, "live.db is missing")],
    ids=["older", "newer", "damaged", "missing"],
)  # fmt: skip
def test_an_unusable_database_is_reported_with_a_remedy(box, argv, harm, told):
    database = box.data / "live.db"
    if isinstance(harm, str):
        with box.transaction() as tx:
            tx.execute(harm)
    elif harm is None:
        database.unlink()
    else:
        database.write_bytes(harm)

    assert told in box.complaint(*argv)


@pytest.mark.parametrize("missing", ["secrets/master.key", "test.db"])
def test_backing_up_an_incomplete_box_names_the_missing_file(box, missing):
    (box.data / missing).unlink()

    assert f"{missing.rpartition('/')[2]} is missing" in box.complaint("backup")


def test_an_invalid_setting_is_reported_before_anything_is_changed(box):
    (box.data / "settings.toml").write_text("[server]\nport = 'http'\n")

    assert "server.port" in box.complaint("serve")


def test_a_venue_file_with_an_error_changes_nothing(box, program, venue_file, tmp_path):
    good = venue_file.read_text("utf-8")
    venue_file.write_text(good.replace("Riad Atlas", "Riad Toubkal") + "x = 1\n", "utf-8")

    assert "slots[0].x" in box.complaint("venue", "apply", str(venue_file))

    with box.transaction() as tx:
        assert tx.value("SELECT name FROM venue") == "Riad Atlas"
    program.data = tmp_path / "new"
    for file in (venue_file, tmp_path / "none.toml"):
        program.complaint("init", "--venue", str(file))
        assert not program.data.exists()


@pytest.mark.parametrize("command", ["backup verify", "restore"])
def test_a_malicious_backup_cannot_write_control_characters_to_the_console(
    program, tmp_path, command
):
    planted, key = tmp_path / "planted\x1b[2J\nroot", x25519.Identity.generate()
    manifest = {
        "venue": "A\x1b[2J\nroot password:", "venue_id": "v", "number": 1, "schema": 99,
        "made_at": "2026-11-27T00:00:00.000Z", "version": "9\x1b[31m", "rows": {},
    }  # fmt: skip
    content, made = json.dumps(manifest).encode(), io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    planted.write_bytes(pyrage.encrypt(made.getvalue(), [key.to_public()]))

    assert program(*command.split(), str(planted), "--key", str(key)) == 1

    assert "\x1b" not in program.out + program.err
    assert "\nroot" not in program.out


@pytest.mark.parametrize("argv", [("key", "list"), ("doctor",)])
@pytest.mark.parametrize("encoding", ["ascii", "iso8859-1"])
def test_a_console_that_cannot_display_some_letters_still_gets_the_output(
    box, monkeypatch, argv, encoding
):
    box(*KEY, "--name", "رياض’")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding=encoding))

    assert main([*argv, "--data", str(box.data)], {"LANG": "fr_MA.UTF-8"}) == 0

    assert "?" in shown.getvalue().decode(encoding)
