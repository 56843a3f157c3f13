"""The entry point of the one-file program."""

import os
import stat
import sys
from collections.abc import MutableMapping
from pathlib import Path

from appliance.core.files import sync


def keep(unpacked: Path, name: str) -> None:
    """Sync the folder of the unpacked program to disk and rename it to `name`.

    See runtime_place.c. If other users may enter the parent folder, they may also read the program,
    because a box that root has started continues as another user.
    """
    is_open = unpacked.parent.stat().st_mode & stat.S_IXOTH
    for path in (*unpacked.rglob("*"), unpacked):
        if is_open:
            path.chmod(0o755)
    os.sync()  # one by one, a thousand files take a minute on a slow card
    unpacked.rename(unpacked.with_name(name))
    unpacked.mkdir()  # because PyInstaller's first process deletes this folder at the end
    sync(unpacked.parent)


def restore_environment(environ: MutableMapping[str, str]) -> None:
    """Undo what `start_from_kept` in runtime_place.c has set, for the programs that this one runs.

    Otherwise a new version of the program would not choose its place, and other programs, such as
    curl in `acme.dns_hook`, would load the libraries of this one.
    """
    for name in [name for name in environ if name.startswith("_PYI_")]:
        del environ[name]
    environ.pop("LD_LIBRARY_PATH", None)
    if "LD_LIBRARY_PATH_ORIG" in environ:
        environ["LD_LIBRARY_PATH"] = environ.pop("LD_LIBRARY_PATH_ORIG")


if __name__ == "__main__":
    if "VENUEBOX_UNPACK" in os.environ:
        keep(Path(__file__).parent, os.environ["VENUEBOX_UNPACK"])
        sys.exit()
    import pyimod02_importers

    # Modules are read when they are first imported. By then, an update may have put another program
    # at this program's path.
    pyimod02_importers.pyz_archive._filename = "/proc/self/exe"  # noqa: SLF001 - no other way
    restore_environment(os.environ)
    from appliance.backup import copy_process

    if sys.argv[1:] == [copy_process.ARGUMENT]:
        sys.exit(copy_process.main())
    from web.main import main

    sys.exit(main())
