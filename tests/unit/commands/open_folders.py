"""Let other users enter a test's own folder, which pytest makes private."""

from pathlib import Path

_OF_PYTEST = ("pytest-", "popen-")  # the parents of a test's folder


def let_everybody_enter(folder: Path) -> None:
    """Let other users enter `folder`, a test's `tmp_path`."""
    for each in (folder, *(p for p in folder.parents if p.name.startswith(_OF_PYTEST))):
        each.chmod(0o755)
