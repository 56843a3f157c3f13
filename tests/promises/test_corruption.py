"""Damaged databases are not served, and damaged backups are not accepted."""

import random
import shutil
import threading

import pytest

from appliance.backup.archive import open_backup
from appliance.backup.recovery_key import parse_recovery_key
from appliance.backup.restore import prove
from appliance.box import open_box
from appliance.clock import newest_zone_database
from appliance.core.errors import OperatorError
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.database.connection import open_connection
from appliance.database.integrity import check_before_serving, list_faults
from appliance.database.migrate import PAGE_BYTES
from tests.clocks import box_clock
from tests.unit.backup.making import KEY_TEXT, MASTER_KEY, a_box_with_guests, a_maker

ZONES = newest_zone_database()


def overwrite(path, page):
    """Overwrite a page (counted from 1) as a failing disk may."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(random.Random(page).randbytes(PAGE_BYTES))


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    return a_box_with_guests(tmp_path_factory.mktemp("box"), guests=60)


def roots(path):
    """Return the first page of each table and each index."""
    connection = open_connection(path, writable=False)
    try:
        rows = connection.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
        return [page for (page,) in rows]
    finally:
        connection.close()


@pytest.mark.parametrize("name", ["live", "test"])
async def test_a_box_with_a_damaged_database_exits(furnished, tmp_path, name):
    folder = shutil.copytree(furnished.root, tmp_path / "box")
    overwrite(folder / f"{name}.db", 2)
    before = threading.active_count()

    with pytest.raises(OperatorError, match=f"{name}.db"):
        open_box(folder, MASTER_KEY, Settings(), address="https://box.example",
                 clock=box_clock(furnished.clock), tokens=Tokens(), zones=ZONES)  # fmt: skip

    assert threading.active_count() == before  # a thread would keep the process running


def test_a_damaged_root_page_is_found_at_the_start_and_by_the_nightly_check(furnished, tmp_path):
    source, path = furnished.root / "live.db", tmp_path / "live.db"
    for page in roots(source):
        shutil.copy(source, path)
        overwrite(path, page)
        before = path.read_bytes()

        assert list_faults(path), page
        with pytest.raises(OperatorError, match="venuebox restore --latest"):
            check_before_serving(path)
        assert path.read_bytes() == before


def test_a_changed_byte_in_a_new_backup_is_detected_and_the_previous_backup_stays(tmp_path):
    box = a_box_with_guests(tmp_path, guests=10)
    draw, maker = random.Random(7), a_maker(box)
    path, _ = maker.make()
    whole, hurt = path.read_bytes(), tmp_path / "hurt.tar.age"
    key = parse_recovery_key(KEY_TEXT)
    damaged = [whole[:n] for n in (0, 10, 500, len(whole) // 2, len(whole) - 16, len(whole) - 1)]
    for _ in range(30):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        damaged.append(bytes(changed))

    for content in damaged:
        hurt.write_bytes(content)
        with pytest.raises(OperatorError), open_backup(hurt) as file:
            prove(file, key, tmp_path, box.clock, ZONES)

    overwrite(box.root / "live.db", roots(box.root / "live.db")[3])
    with pytest.raises(OperatorError, match="damaged"):
        maker.make()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
