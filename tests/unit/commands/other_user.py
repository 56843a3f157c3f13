"""Run commands as root on another user's directory, each in its own process.

A command that drops root's privileges does so permanently, so it cannot run in the process of the
tests. Modules that are imported late are imported here first, because the other user may not be
able to read the tests' Python installation.
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
    """Return what each command did: `status`, `out`, `err`, user `ids`, and `touched` files.

    `touched` lists only files that were touched as root. `attack` names what the other user does in
    the directory at the same time, with the path `at`. The attack runs in the command's own
    process, so that it always happens at the worst moment.
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
    importlib.import_module("difflib")  # for suggestions of settings
    for module in pkgutil.iter_modules(encodings.__path__, "encodings."):
        with contextlib.suppress(ImportError):  # encodings of other systems
            importlib.import_module(module.name)


def _run(argv: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """Run the command in a child process."""
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
    """Captured output. A box is stopped as soon as it is ready."""

    def write(self, text: str) -> int:
        if text.startswith("ready "):
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def _plant_in_scratch_folders(_event: str, data: Path, at: str) -> None:
    """Create a link in place of the coming copy of the database."""
    for folder in (data / "tmp").glob("backup-*"):
        (folder / "live.db").symlink_to(at)


def _swap_folder(event: str, data: Path, at: str) -> None:
    """Replace a listed folder by a link just before a file in it is changed."""
    if event == "os.chmod":
        (data / "log" / "many").rename(data / "log" / "aside")
        (data / "log" / "many").symlink_to(at)


# Attacks of the other user in the directory while the command runs.
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
