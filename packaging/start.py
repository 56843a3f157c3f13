"""Where the one-file program begins."""

import os
import stat
import sys
from pathlib import Path

from appliance.core.files import sync


def keep(unpacked: Path, name: str) -> None:
    """Sync the unpacked program and rename it to `name` (runtime_place.c).

    It is open to all users if the folder around it is: root continues as another user, who reads
    it too.
    """
    is_open = unpacked.parent.stat().st_mode & stat.S_IXOTH
    for path in (*unpacked.rglob("*"), unpacked):
        if is_open:
            path.chmod(0o755)
    os.sync()  # one by one, a thousand files take a minute on a slow card
    unpacked.rename(unpacked.with_name(name))
    unpacked.mkdir()  # PyInstaller's first process removes it at the end
    sync(unpacked.parent)


if __name__ == "__main__":
    if "VENUEBOX_UNPACK" in os.environ:
        keep(Path(__file__).parent, os.environ["VENUEBOX_UNPACK"])
        sys.exit()
    from web.main import main

    sys.exit(main())
