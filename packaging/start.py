"""The entry point of the built program, as one file and as it is installed."""

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path


def restore_environment(environ: MutableMapping[str, str]) -> None:
    """Undo what PyInstaller's bootloader has set, for the programs that this one runs.

    Otherwise other programs, such as curl in `acme.dns_hook`, would load the libraries of this one,
    and the one file, run by itself, would not unpack itself.
    """
    for name in [name for name in environ if name.startswith("_PYI_")]:
        del environ[name]
    environ.pop("LD_LIBRARY_PATH", None)
    if "LD_LIBRARY_PATH_ORIG" in environ:
        environ["LD_LIBRARY_PATH"] = environ.pop("LD_LIBRARY_PATH_ORIG")


def open_to_all(folder: Path) -> None:
    """Let all users read the program. The one file unpacks itself for its user alone.

    A command that root runs continues as the owner of the data directory.
    """
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)


if __name__ == "__main__":
    restore_environment(os.environ)
    unpacked = Path(__file__).parent
    if os.geteuid() == 0 and unpacked.name != "_internal":  # not yet installed
        open_to_all(unpacked)
    from appliance.backup import copy_process

    if sys.argv[1:] == [copy_process.ARGUMENT]:
        sys.exit(copy_process.main())
    from web.main import main

    sys.exit(main())
