"""`venuebox standby`: run a standby for a box, show its page, and take over from that box.

The standby reads the backup target every minute.
"""

import argparse
import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from hmac import compare_digest
from string import digits

from aiohttp import web
from babel.dates import format_timedelta

from appliance.backup.fence import Marker, read_installation
from appliance.backup.recovery_key import find_recovery_key
from appliance.backup.standby import (
    Lost,
    Refused,
    Source,
    Standby,
    State,
    claim,
    describe_lost,
    read_marker,
    read_source,
    set_up,
)
from appliance.backup.targets import ensure_sftp_key
from appliance.commands.backup import ask_key
from appliance.commands.console import Console
from appliance.core.data_directory import DataDirectory, listen_for_wakeups, wake_box
from appliance.core.errors import ApiError, OperatorError
from appliance.core.i18n import Language
from appliance.core.i18n import mark as _
from appliance.core.network import in_url
from appliance.core.settings import Settings
from appliance.core.text import western_digits
from appliance.core.tokens import Tokens
from appliance.database.integrity import describe_venue
from appliance.http.rate_limit import RateLimit
from appliance.http.request import caller_key
from appliance.http.security_headers import page_headers
from appliance.jobs.watchdog import keep_alive, sd_notify
from appliance.scheduler import run_in_daemon_thread
from web.connection import Connection, ConnectionLimit, affordable_connections
from web.listeners import listen
from web.neighbours import find_venue_boxes
from web.portal.forms import read_form
from web.portal.responses import refusal_text
from web.rendering import LANGUAGES, STATIC_ROUTES, TEMPLATES, prepare_pages
from web.serve import run_serve

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0
_SOON_SECONDS = 5.0  # until the first backup is ready, because an operator is waiting for it
_TRIES_PER_MINUTE = 10
_LEAVE_SECONDS = 0.5  # time to send the answer before this server stops
_STALE_MS = 600_000


async def find_live(standby: Standby, host: str, tokens: Tokens) -> list[Marker]:
    """Return the markers of the venue's boxes that answer on the network now.

    Queries the addresses in the marker at the backup target, and those found by mDNS.
    """
    state = standby.state
    slug = state.ready.header.slug if state.ready else ""
    return await find_venue_boxes(state.marker, slug, host, standby.key, tokens)


class StandbyServer:
    """Serves the page and `/health`. The event `taken_over` is set after a take-over."""

    def __init__(
        self,
        standby: Standby,
        code: str,
        host: str,
        tokens: Tokens,
        find_port: Callable[[], int],
    ) -> None:
        """`find_port` returns the port on which the restored box will serve plain http."""
        self.taken_over = asyncio.Event()
        self._standby, self._code, self._host, self._tokens = standby, code, host, tokens
        self._find_port = find_port
        self._tries = RateLimit(standby.clock, _TRIES_PER_MINUTE)
        self._live: list[Marker] = []
        self._lost: Lost | None = None  # set by the take-over
        self._busy = asyncio.Lock()

    def build(self) -> web.Application:
        """Build the application."""
        app = web.Application()
        prepare_pages(app)
        app.router.add_get("/", self.show)
        app.router.add_get("/health", self.show_health)
        app.router.add_post("/take-over", self.take_over)
        for _method, path, handler in STATIC_ROUTES:
            app.router.add_get(path, handler)
        return app

    async def watch(self) -> None:
        """Refresh the state every minute, or every 5 s before the first backup, until cancelled."""
        trouble = ""
        while True:
            async with self._busy:
                await self._look()
            if self._standby.state.trouble != trouble:
                trouble = self._standby.state.trouble
                log.warning("standby: %s", trouble or "the backup target can be read again")
            is_ready = self._standby.state.ready is not None
            await asyncio.sleep(_EVERY_SECONDS if is_ready else _SOON_SECONDS)

    async def _look(self) -> None:
        await run_in_daemon_thread(self._standby.refresh)
        self._live = await find_live(self._standby, self._host, self._tokens)

    async def show_health(self, _request: web.Request) -> web.Response:
        """`GET /health`: return 200 if the target's latest backup is ready here, otherwise 503.

        The target must also have been read within the last 10 min.
        """
        state, now = self._standby.state, self._standby.clock.now()
        is_good = state.ready is not None and now - (state.seen_at or 0) < _STALE_MS
        age = (now - state.ready.header.made_at_ms) // 1000 if state.ready else None
        body = {"status": "standby", "backupAgeSeconds": age, "otherBoxAnswers": bool(self._live)}
        return web.json_response(body, status=200 if is_good else 503)

    async def show(self, request: web.Request) -> web.Response:
        """`GET /`: show the backup's age, whether the other box answers, and the take-over form."""
        return self._page(request)

    async def take_over(self, request: web.Request) -> web.Response:
        """`POST /take-over`: restore the backup, if the code is right and the other box is off."""
        language = request.config_dict[LANGUAGES].of(request)
        caller = caller_key(request.remote or "")
        try:
            self._tries.spend(caller)
            form = await read_form(request)
        except ApiError as refusal:
            problem = refusal_text(refusal, language)
            return self._page(request, status=refusal.status, problem=problem)
        typed = western_digits(form.secret("code"))
        code = "".join(filter(digits.__contains__, typed))
        if not compare_digest(code, self._code):
            return self._page(request, status=403, problem=language.gettext(_("Wrong code.")))
        self._tries.give_back(caller)
        try:
            async with self._busy:
                if self._lost is None:  # else somebody tapped twice
                    await self._look()
                    is_off = form.checked("off")
                    _proven, self._lost = await run_in_daemon_thread(
                        lambda: self._standby.take_over(self._live, force=is_off)
                    )
        except Refused as error:
            problem = language.gettext(error.message, **error.values)
            return self._page(
                request, status=409, problem=problem, may_force=not self._live, code=code
            )
        except OperatorError as error:
            return self._page(request, status=409, problem=str(error), code=code)
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, self.taken_over.set)
        host = request.url.host or ""
        address = f"http://{in_url(host)}:{self._find_port()}/portal"
        return self._page(request, lost=self._lost, address=address)

    def _page(self, request: web.Request, *, status: int = 200, **more: object) -> web.Response:
        language = request.config_dict[LANGUAGES].of(request)
        values: dict[str, object] = {
            "state": self._standby.state,
            "live": self._live,
            "ago": partial(self._ago, language),
            "lost": None,
            "problem": "",
            "may_force": False,
            "code": "",
            "address": "",
        }
        template = request.config_dict[TEMPLATES].get_template("standby.html")
        text = template.render(
            values | more,
            language=language,
            is_test=False,
            _=language.gettext,
            ngettext=language.ngettext,
        )
        headers = {**page_headers(), "Content-Language": language.code, "Server": "venuebox"}
        return web.Response(text=text, status=status, content_type="text/html", headers=headers)

    def _ago(self, language: Language, instant: int) -> str:
        passed = timedelta(milliseconds=min(instant - self._standby.clock.now(), -1000))
        return format_timedelta(passed, add_direction=True, locale=language.locale)


async def run_until_taken_over(
    server: StandbyServer, standby: Standby, listener: socket.socket, environ: Mapping[str, str]
) -> bool:
    """Serve on `listener` until a signal or a take-over. Return True after a take-over."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)

    def on_wakeup() -> None:
        if standby.directory.holds_a_box():  # `venuebox standby take-over` restored it
            server.taken_over.set()

    runner = web.AppRunner(server.build(), handle_signals=False)
    tasks: list[asyncio.Task[object]] = []
    with listen_for_wakeups(standby.directory.wakeup_pipe, on_wakeup):
        await runner.setup()
        assert runner.server is not None  # noqa: S101 - set by `setup`
        limit = ConnectionLimit(affordable_connections())
        connection = partial(Connection, runner.server, limit)
        accepting = await loop.create_server(connection, sock=listener)
        try:
            host, port = listener.getsockname()[:2]
            print(f"standby http://{in_url(host)}:{port}", flush=True)
            sd_notify(environ, "READY=1")
            ends = [loop.create_task(event.wait()) for event in (stopped, server.taken_over)]
            watching = loop.create_task(server.watch())
            tasks = [*ends, watching, loop.create_task(keep_alive(environ))]
            await asyncio.wait([*ends, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            accepting.close()
            await runner.cleanup()
    for task in tasks[2:]:
        with suppress(asyncio.CancelledError):
            task.result()
    return server.taken_over.is_set()


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the standby until a signal arrives or the standby takes over.

    After a take-over, serve the restored box, in this process and at later starts.
    """
    directory = console.directory(arguments)
    if arguments.what:
        return _take_over(arguments, console, directory)
    if directory.holds_a_box():
        if arguments.source:
            raise OperatorError(
                f"{directory.root} already contains a box. Specify another directory."
            )
        return run_serve(arguments, console)
    source = _find_source(arguments, console, directory)
    server = console.settings(directory).server
    host = arguments.host or server.host
    port = server.port if arguments.port is None else arguments.port
    standby = Standby(directory, source, console.clock, console.zones)
    if source.target.startswith("sftp:"):
        print(f"this machine's public key, for authorized_keys:\n{ensure_sftp_key(directory)}")
    print(f"take-over code, to type on the page: {source.code}", flush=True)

    def find_port() -> int:
        return console.settings(directory).server.port if arguments.port is None else port

    async def stand_by() -> bool:
        page = StandbyServer(standby, source.code, host, console.tokens, find_port)
        return await run_until_taken_over(page, standby, listener, console.environ)

    with listen(host, port) as listener:
        is_taken_over = asyncio.run(stand_by())
    return run_serve(arguments, console) if is_taken_over else 0


def _find_source(
    arguments: argparse.Namespace, console: Console, directory: DataDirectory
) -> Source:
    """Return the source of the backups. With --from, first store it and the recovery key."""
    if arguments.source is not None:
        key = ask_key(arguments.key)
        backup = replace(console.settings(directory).backup, target=arguments.source)
        return set_up(directory, backup, key)
    source = read_source(directory.root)
    if source is None:
        raise OperatorError(
            f"{directory.root} is not a standby yet. Specify the backup target with --from."
        )
    return source


def _take_over(arguments: argparse.Namespace, console: Console, directory: DataDirectory) -> int:
    settings = console.settings(directory)
    host = arguments.host or settings.server.host
    if directory.holds_a_box():
        return _claim(arguments, console, directory, settings, host)
    source = read_source(directory.root)
    if source is None:
        raise OperatorError(
            f"{directory.root} is not a standby. Run venuebox standby --from first."
        )
    standby = Standby(directory, source, console.clock, console.zones)
    standby.refresh()
    live = asyncio.run(find_live(standby, host, console.tokens))
    proven, lost = standby.take_over(live, force=arguments.force)
    is_running = wake_box(directory.wakeup_pipe)
    print(
        f"restored the backup of {proven.header.venue} from {proven.header.made_at} with "
        f"{proven.reservations} reservations. "
        + ("The box starts now." if is_running else "Start the box with venuebox serve.")
    )
    marker = standby.state.marker
    if marker is not None and marker.addresses:
        print(
            f"The other box was at {marker.addresses[0]}. Give this machine the same address, so "
            "that the phones at the door find it."
        )
    print(*describe_lost(lost), sep="\n")
    return 0


def _claim(
    arguments: argparse.Namespace, console: Console, directory: DataDirectory, settings: Settings,
    host: str,
) -> int:  # fmt: skip
    key = find_recovery_key(directory)
    if key is None:
        raise OperatorError(
            "this box has no recovery key, so no other box can have restored its data. Start this "
            "box with venuebox serve."
        )
    slug, now = describe_venue(directory.database("live"))[1], console.clock.now()

    async def look() -> tuple[State, list[Marker]]:
        state = await read_marker(directory, settings.backup, key, now)
        own = read_installation(directory.root)
        return state, await find_venue_boxes(state.marker, slug, host, key, console.tokens, own)

    state, live = asyncio.run(look())
    claim(directory, state, live, console.clock, force=arguments.force)
    print("this box may serve again with its own data. Start it with venuebox serve.")
    return 0
