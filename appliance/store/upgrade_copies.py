"""The plain copies that earlier versions kept of a database before its schema changed."""

import re
from pathlib import Path

_NAME = re.compile(r"(live|test)-before-upgrade-\d{4}-(\d+)\.db")


def forget_copies(folder: Path, before: int) -> None:
    """Delete those made before that instant, in ms: guests who are forgotten are still in them."""
    for path in folder.glob("*-before-upgrade-*.db"):
        named = _NAME.fullmatch(path.name)
        if named and int(named[2]) < before:
            path.unlink(missing_ok=True)
