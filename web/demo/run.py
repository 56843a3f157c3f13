"""Run the demo: a box of its own, its evening, and the partner's receiver beside it."""

import argparse
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path

from appliance.alone import is_alone
from appliance.box import Box
from appliance.commands.console import Console
from appliance.commands.init import found_box
from appliance.data_directory import DataDirectory, write_file
from appliance.errors import Trouble
from appliance.model.venue_file import parse_venue_file
from appliance.settings import Settings
from web.demo.evening import invite_owner, prepare_evening
from web.demo.guide import make_guide
from web.demo.receiver import Receiver
from web.names.listening import listen
from web.serve import serve_directory

_ELSEWHERE = "--port, or with make run PORT=8090"
_LOOPBACK = "127.0.0.1"
_MARK = "demo"
_WHOLE_DAY = 24 * 60


def run_demo(arguments: argparse.Namespace, console: Console) -> int:
    """`venuebox serve --demo`: the exit status.

    Each start is a fresh evening: in a directory that ends with the demo, or in `--data DIR`,
    which may hold nothing but an earlier demo.
    """
    host = arguments.host or _LOOPBACK
    if not is_alone(host):
        raise Trouble(f"the demo listens on this machine alone, not on {host}: leave --host out")
    with _own_directory(arguments.data) as directory:
        settings = console.settings(directory)
        port = settings.server.port if arguments.port is None else arguments.port
        with (
            listen(host, port, _ELSEWHERE) as listener,
            _listen_beside(listener) as receiver_listener,
        ):
            _found(directory, console)
            receiver = Receiver(console.clock, receiver_listener)

            @asynccontextmanager
            async def beside(box: Box) -> AsyncIterator[None]:
                async with receiver.running():
                    await _explain(box, receiver, directory, passing=arguments.data is None)
                    yield

            return serve_directory(
                directory,
                _demo_settings(settings, receiver),
                console,
                listener,
                host=host,
                beside=beside,
            )


async def _explain(
    box: Box, receiver: Receiver, directory: DataDirectory, *, passing: bool
) -> None:
    live = await prepare_evening(box.live, receiver)
    test = await prepare_evening(box.test, receiver)
    guide = make_guide(
        live,
        test,
        receiver=receiver,
        welcome=await invite_owner(box),
        directory=directory.root,
        passing=passing,
        scan_id=box.tokens.new_id(box.clock.now()),
        program=_program(),
    )
    print(guide, flush=True)


@contextmanager
def _own_directory(given: str | None) -> Iterator[DataDirectory]:
    """A directory that vanishes with the demo, or the one that was asked for."""
    if given is not None:
        yield DataDirectory(Path(given).expanduser().absolute())
        return
    root = Path(tempfile.mkdtemp(prefix="venuebox-demo-"))
    try:
        yield DataDirectory(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _found(directory: DataDirectory, console: Console) -> None:
    """Make the demo's box; an earlier demo in the same place makes room."""
    mark = directory.root / _MARK
    if mark.exists():
        with directory.lock():
            directory.forget()
    text = resources.files("web.demo").joinpath("venue.toml").read_text("utf-8")
    found_box(directory, parse_venue_file(text, console.zones), console)
    write_file(mark, b"")


def _demo_settings(settings: Settings, receiver: Receiver) -> Settings:
    """Opened for the one receiver, and for guests who are let in at any hour."""
    return replace(
        settings,
        server=replace(settings.server, app_url=""),
        webhooks=replace(
            settings.webhooks,
            allow_networks=(receiver.authority,),
            allow_http=True,
            clock_grace_minutes=0,
        ),
        door=replace(settings.door, early_minutes=_WHOLE_DAY),
        booking=replace(settings.booking, enabled=True),
    )


def _listen_beside(listener: socket.socket) -> socket.socket:
    """The port after the box's own, or any that is free."""
    port = listener.getsockname()[1] + 1
    try:
        return listen(_LOOPBACK, port)
    except (Trouble, OverflowError):
        return listen(_LOOPBACK, 0)


def _program() -> str:
    """How this program was called: `make` leaves it where no PATH leads."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "venuebox" else "venuebox"
