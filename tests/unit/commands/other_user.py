"""Runs commands as root before a directory of another user, each in a process of its own.

A command that gives up root's rights does so for good, so it cannot run in the process of the
tests. Everything that is imported late is imported here first: the other user may not be able to
read the Python of these tests, which may lie in root's home.
"""

import contextlib
import encodings
import importlib
import io
import json
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOBODY = 65534
ROOT = Path(__file__).parents[3]
_PACKAGES = ("appliance", "terminal_bridge", "web")
_TOUCHING = ("open", "os.", "shutil.", "glob.")


def run_as_root(data: Path, *runs: list[str], attack: str = "", at: Path | None = None) -> Any:
    """What each command did: `status`, `out`, `err`, `ids` at its end, `touched` while root.

    `attack` names what the other user does in the directory meanwhile, with the path `at`: it is
    done in the command's own process, so that it comes at the worst moment each time.
    """
    asked = {"data": str(data), "runs": runs, "attack": attack, "at": str(at)}
    done = subprocess.run(
        [sys.executable, "-m", __name__], input=json.dumps(asked), cwd=ROOT,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _import_everything() -> None:
    for package in map(importlib.import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    importlib.import_module("difflib")  # by settings, to suggest a variable's right name
    for module in pkgutil.iter_modules(encodings.__path__, "encodings."):
        with contextlib.suppress(ImportError):  # of other systems
            importlib.import_module(module.name)


def _run(argv: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """The command in a child of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            json.dump(_do(argv, asked), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said: dict[str, Any] = json.load(pipe)
    os.waitpid(child, 0)
    return said


def _do(argv: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    data, touched, attack = asked["data"], [], _ATTACKS.get(asked["attack"])
    attacking = False

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal attacking
        path = arguments[0] if event.startswith(_TOUCHING) and arguments else None
        if attacking or not isinstance(path, str | bytes | os.PathLike):
            return
        if os.geteuid() == 0 and os.fsdecode(path).startswith(data):
            touched.append([event, os.fsdecode(path)])
        if attack is not None:
            attacking = True
            with contextlib.suppress(OSError):
                attack(event, Path(data), asked["at"])
            attacking = False

    sys.addaudithook(note)
    out, err = _Heard(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = importlib.import_module("web.main").main(argv, {"VENUEBOX_DATA": data})
    ids = [*os.getresuid(), *os.getresgid(), *os.getgroups()]
    return {"status": status, "out": out.getvalue(), "err": err.getvalue(), "ids": ids,
            "touched": touched}  # fmt: skip


class _Heard(io.StringIO):
    """What was said; a box is stopped as soon as it is ready."""

    def write(self, text: str) -> int:
        if text.startswith("ready "):
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def _plant_in_scratch_folders(_event: str, data: Path, at: str) -> None:
    """A link where a copy of the database will be made."""
    for folder in (data / "tmp").glob("backup-*"):
        (folder / "live.db").symlink_to(at)


def _swap_folder(event: str, data: Path, at: str) -> None:
    """A folder that was listed becomes a link when a file in it is about to be changed."""
    if event == "os.chmod":
        (data / "log" / "many").rename(data / "log" / "aside")
        (data / "log" / "many").symlink_to(at)


# What the other user does in the directory while the command runs.
_ATTACKS: dict[str, Callable[[str, Path, str], None]] = {
    "scratch": _plant_in_scratch_folders,
    "swap": _swap_folder,
}


def _main() -> None:
    asked = json.load(sys.stdin)
    _import_everything()
    json.dump([_run(argv, asked) for argv in asked["runs"]], sys.stdout)


if __name__ == "__main__":
    _main()
