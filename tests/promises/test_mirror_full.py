"""The mirror's database on a full disk, which later has space again."""

import os

import pytest

from tests.builders import table_id
from tests.promises.postgres import Postgres
from tests.promises.test_mirror import mirrored, quick  # noqa: F401 - a fixture

pytestmark = [pytest.mark.process, pytest.mark.network]
MEGABYTES = 24
UNSHARE = [
    "unshare",
    *(["-m"] if os.getuid() == 0 else ["-Um", "--map-current-user", "--keep-caps"]),
]
MOUNT = (
    f'mount -t tmpfs -o size={MEGABYTES}m,mode=777 tmpfs "$0" && mkdir "$0/space" && '
    '{ test "$(id -u)" != 0 || chown postgres "$0/space"; } && exec "$@"'
)


async def test_a_mirror_on_a_full_disk_gets_every_change_when_there_is_space(tmp_path):
    server = Postgres(fsync="off")
    small = server.folder / "small"
    small.mkdir()
    server.within = [*UNSHARE, "sh", "-c", MOUNT, str(small)]
    server.start()
    try:
        server.ask(f"CREATE TABLESPACE small LOCATION '{small}/space'", "postgres")
        server.ask("CREATE DATABASE venues TABLESPACE small", "postgres")
        async with mirrored(tmp_path, server, server.url()) as mirror:
            assert await mirror.fill() == ""
            mirror.ask("CREATE TABLE filler (text text)")
            full = (
                "INSERT INTO filler SELECT repeat(md5(n::text), 60) FROM generate_series(1, {}) n"
            )
            for rows in (4000, 400, 40, 4, 4, 4):
                while not server._ask("venues", full.format(rows)).returncode:
                    pass

            for number in range(1, 6):
                await mirror.book(table_id=table_id(f"T{number}"))
            assert await mirror.fill() == "full"
            assert mirror.checked()[0] == "warn"

            mirror.ask("DROP TABLE filler")
            assert await mirror.fill() == ""
            assert await mirror.different() == []
    finally:
        server.stop()
