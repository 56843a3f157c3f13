"""Run the demo: a box of its own, its evening, and the guide through it."""

import argparse
import shlex
import shutil
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
from appliance.data_directory import DataDirectory
from appliance.durable import atomic_write
from appliance.errors import Trouble
from appliance.model.venue_file import parse_venue_file
from appliance.settings import Settings
from web.demo.evening import invite_owner, prepare_evening
from web.demo.guide import make_guide
from web.names.listening import listen
from web.serve import serve_directory

_ELSEWHERE = "--port, or with make run PORT=8090"
_LOOPBACK = "127.0.0.1"
_LOOPBACK_NETWORKS = ("127.0.0.0/8", "::1")
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
    with _own_directory(arguments, console) as directory:
        settings = console.settings(directory)
        port = settings.server.port if arguments.port is None else arguments.port
        with listen(host, port, _ELSEWHERE) as listener:
            _found(directory, console)

            @asynccontextmanager
            async def beside(box: Box) -> AsyncIterator[None]:
                await _explain(box, directory, passing=arguments.data is None)
                yield

            return serve_directory(
                directory, _demo_settings(settings), console, listener, host=host, beside=beside
            )


async def _explain(box: Box, directory: DataDirectory, *, passing: bool) -> None:
    token = box.test.keyring.echo_token(box.tokens.new_id(box.clock.now()))
    live = await prepare_evening(box.live, None)
    test = await prepare_evening(box.test, f"{box.test.links.base}/echo/{token}")
    guide = make_guide(
        live,
        test,
        token=token,
        welcome=await invite_owner(box),
        directory=directory.root,
        passing=passing,
        scan_id=box.tokens.new_id(box.clock.now()),
        program=_program(),
    )
    print(guide, flush=True)


@contextmanager
def _own_directory(arguments: argparse.Namespace, console: Console) -> Iterator[DataDirectory]:
    """A directory that vanishes with the demo, or the one that was asked for."""
    if arguments.data is not None:
        yield console.directory(arguments)
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
    atomic_write(mark, b"")


def _demo_settings(settings: Settings) -> Settings:
    """Open for receivers on this machine, and for guests at any hour; links lead here alone."""
    webhooks = settings.webhooks
    return replace(
        settings,
        server=replace(settings.server, app_url=""),
        webhooks=replace(
            webhooks,
            allow_http=True,
            clock_grace_minutes=0,
            allow_networks=(*webhooks.allow_networks, *_LOOPBACK_NETWORKS),
        ),
        door=replace(settings.door, early_minutes=_WHOLE_DAY),
        booking=replace(settings.booking, enabled=True),
    )


def _program() -> str:
    """How this program was called: `make` leaves it where no PATH leads."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "venuebox" else "venuebox"
