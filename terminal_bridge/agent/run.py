"""Run a bridge: pair it once, read its scanners, sync with the box, and shut down cleanly."""

import argparse
import asyncio
import logging
import os
import signal
from dataclasses import replace
from pathlib import Path

from appliance.commands.console import Console, read_argument
from appliance.core.edited_files import decode_edited, parse_edited
from appliance.core.errors import OperatorError
from appliance.core.i18n import load_languages
from appliance.core.scanner_settings import ReaderSettings, parse_readers
from terminal_bridge.agent.agent import Agent, Link
from terminal_bridge.agent.client import (
    BoxClient,
    Identity,
    NotPaired,
    OutOfReach,
    Refused,
    load_identity,
    parse_box,
)
from terminal_bridge.agent.spool import open_spool
from terminal_bridge.scanners.scanners import Readers

log = logging.getLogger(__name__)

_PRIVATE = 0o077
_STOP_SECONDS = 5.0


def run_bridge(arguments: argparse.Namespace, console: Console) -> int:
    """Run `venuebox bridge`. Return the exit status."""
    os.umask(_PRIVATE)
    directory = console.directory(arguments)
    if directory.holds_a_box():
        raise OperatorError(
            f"{directory.root} already contains a box. Specify another directory for the bridge."
        )
    readers = read_bridge_settings(directory.settings_file)
    with directory.lock():
        load_languages()  # load now, because loading would take too long during a scan
        return asyncio.run(_run(arguments, console, directory.root, readers))


def read_bridge_settings(file: Path) -> tuple[ReaderSettings, ...]:
    """Read the scanners from the bridge's settings.toml.

    Raises OperatorError if the file is unreadable or invalid, or configures no scanner.
    """
    try:
        raw = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise OperatorError(f"{file.name} cannot be read: {error}") from None
    document = parse_edited(decode_edited(raw, file.name), file.name)
    for name in document.keys() - {"readers"}:
        raise OperatorError(
            f"unknown section [{name}] in {file.name}. A bridge has only [[readers]]."
        )
    readers = parse_readers(document.get("readers", []), on_a_bridge=True)
    if not readers:
        raise OperatorError(
            f"{file} is missing or configures no scanner. Write [[readers]] into it (see "
            "docs/guide/scanners.md)."
        )
    return readers


async def _run(
    arguments: argparse.Namespace, console: Console, folder: Path,
    settings: tuple[ReaderSettings, ...],
) -> int:  # fmt: skip
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    identity = await _identify(arguments, folder)
    spool = await open_spool(folder / "spool.db")
    try:
        async with BoxClient(identity) as client:
            agent = Agent(spool, client, console.clock, console.tokens, console.zones)
            await agent.load()
            readers = Readers(settings, lambda _: agent, console.clock)
            await readers.start()
            syncing = asyncio.create_task(Link(agent, folder).run())
            print(f"ready {identity.box}", flush=True)
            await stopped.wait()
            await readers.close()
            syncing.cancel()
            await asyncio.wait([syncing], timeout=_STOP_SECONDS)
    finally:
        await spool.close()
    return 0


async def _identify(arguments: argparse.Namespace, folder: Path) -> Identity:
    """Return the saved identity, updated from the arguments. Pair first if `--pair` is given."""
    known = load_identity(folder)
    if known is None and not (arguments.pair and arguments.box):
        raise OperatorError(
            "this bridge is not paired. Run it once with --box URL and --pair CODE."
        )
    identity = known or Identity(parse_box(arguments.box))
    if arguments.box:
        identity = replace(identity, box=parse_box(arguments.box))
    if arguments.ca:
        ca = read_argument(arguments.ca).decode("ascii", "ignore")
        identity = replace(identity, ca=ca)
    if arguments.pair:
        try:
            identity = await _pair(identity, arguments.pair, arguments.name)
        except OperatorError as error:
            if known is None:
                raise
            log.warning("agent: pairing failed (%s), so the previous pairing is kept", error)
            identity = replace(identity, box=known.box)
    if identity != known:
        identity.save(folder)
    return identity


async def _pair(identity: Identity, code: str, name: str | None) -> Identity:
    async with BoxClient(identity) as client:
        try:
            answer = await client.pair(code, name)
            return replace(identity, token=answer["token"]).introduced(answer)
        except OutOfReach as error:
            raise OperatorError(
                f"no pairing with {identity.box}: {error}. On the box, venuebox terminal pair"
                " prints the address to use."
            ) from None
        except (NotPaired, Refused) as error:
            raise OperatorError(f"{identity.box} refused the pairing: {error}") from None
        except (KeyError, TypeError):
            raise OperatorError(
                f"{identity.box} is not a venuebox: its response is not valid. Check the address."
            ) from None
