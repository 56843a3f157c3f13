"""A test's own folder, which pytest closes to all but who runs it, opened to everybody."""

from pathlib import Path

_OF_PYTEST = ("pytest-", "popen-")  # those above it: of the user, the run and the worker


def let_everybody_enter(folder: Path) -> None:
    """Let other users come as far as `folder`, a test's `tmp_path`."""
    for each in (folder, *(p for p in folder.parents if p.name.startswith(_OF_PYTEST))):
        each.chmod(0o755)
