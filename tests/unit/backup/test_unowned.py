"""Restoring onto a new machine: what may be replaced there, and what a backup leaves there."""

import pytest
from pyrage import x25519

from appliance.backup.restore import is_unowned
from appliance.clock import SystemClock, newest_zone_database
from appliance.commands.console import Console
from appliance.commands.init import found_unfurnished_box
from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from appliance.staff.accounts import begin_setup, offer_setup
from tests.unit.backup.making import KEY_TEXT, a_box_with_guests, a_maker
from web.main import main


@pytest.fixture
def backup(tmp_path):
    """A backup of Riad Atlas, whose settings differ from those of a new box."""
    made = a_box_with_guests(tmp_path / "old", guests=3)
    made.directory.settings_file.write_text("[server]\nport = 8099\n")
    path, _ = a_maker(made).make()
    return path


@pytest.fixture
def new(tmp_path):
    """The directory of a box after its first `serve`."""
    directory = DataDirectory(tmp_path / "new")
    found_unfurnished_box(directory, Console(SystemClock(), Tokens(), {}))
    write_into(directory, offer_setup)
    (directory.root / "tls" / "authority.pem").write_text("of the new box")
    return directory


def write_into(directory, action, *args, **more):
    path = directory.database("live")
    with session(path, SystemClock(), Tokens(), newest_zone_database()) as tx:
        action(tx, *args, **more)


def restore(path, directory):
    return main(["restore", str(path), "--data", str(directory.root), "--key", KEY_TEXT], {})


def test_restoring_onto_a_box_that_was_never_set_up_replaces_it_completely(backup, new, capsys):
    master_key = new.master_key()

    assert restore(backup, new) == 0, capsys.readouterr().err

    assert "reservations: 3" in capsys.readouterr().out
    assert new.settings_file.read_text() == "[server]\nport = 8099\n"
    assert new.master_key() != master_key
    assert not (new.root / "tls" / "authority.pem").exists()
    [aside] = new.root.glob("unused-*")
    assert (aside / "authority.pem").read_text() == "of the new box"
    assert aside.stat().st_mode & 0o077 == 0


def test_an_unusable_backup_leaves_the_new_box_unchanged(backup, new, capsys):
    backup.write_bytes(backup.read_bytes()[:-100])
    master_key = new.master_key()

    assert restore(backup, new) == 1

    assert capsys.readouterr().err.startswith("venuebox: this backup")
    assert new.master_key() == master_key
    assert list(new.root.glob("unused-*")) == []
    new.check()


@pytest.mark.parametrize("spoil", ["begun by init", "unreadable"])
def test_a_box_that_may_have_an_owner_is_never_overwritten(backup, tmp_path, spoil, capsys):
    held = a_box_with_guests(tmp_path / "held", guests=1).directory
    if spoil == "unreadable":
        held.database("live").write_bytes(b"not a database" * 1000)
    else:
        write_into(held, begin_setup, closed=False)

    assert not is_unowned(held, SystemClock(), newest_zone_database())
    assert restore(backup, held) == 1
    assert "already contains a box" in capsys.readouterr().err


@pytest.mark.parametrize("left", ["live.db-wal", "secrets/master.key"])
def test_a_backup_is_not_restored_into_the_remains_of_another_box(backup, tmp_path, left):
    other = DataDirectory(tmp_path / "other")
    (other.root / left).parent.mkdir(parents=True)
    (other.root / left).write_bytes(b"stale")

    assert restore(backup, other) == 1

    assert (other.root / left).read_bytes() == b"stale"


def test_a_backup_is_verified_only_with_its_own_key(backup, tmp_path):
    verify = ["backup", "verify", str(backup), "--data", str(tmp_path / "nowhere"), "--key"]

    assert main([*verify, KEY_TEXT], {}) == 0
    assert main([*verify, str(x25519.Identity.generate())], {}) == 1
