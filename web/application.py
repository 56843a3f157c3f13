"""Build the aiohttp application for a box."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from aiohttp import web

from appliance.box import Box, heartbeat_job
from appliance.checks.check import forget_observations
from appliance.checks.network import OutsideWatch
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import Unavailable
from appliance.email.worker import EmailWorker
from appliance.environment import own_version
from appliance.http.rate_limit import RateLimit
from appliance.http.request import (
    ANYBODY,
    BODY_LIMIT,
    PAIRING_TRIES,
    PRINCIPALS,
    SEARCH_PHONES,
    Handler,
    Principal,
)
from appliance.jobs.nightly import BackupCopies, FrequentBackups, NightlyWork, Retention
from appliance.jobs.reservation_states import make_reservation_jobs
from appliance.mirror.carrier import start_mirror
from appliance.privacy import Erasures
from appliance.scheduler import Scheduler
from appliance.tls.acme import Acme
from appliance.tls.certificates import Certificates
from appliance.webhooks.dispatcher import Dispatcher
from terminal_bridge.api import TERMINAL_ROUTES
from terminal_bridge.api.pairing import pairing_tries
from terminal_bridge.scanners.at_box import readers_of
from terminal_bridge.scanners.scanners import READERS
from web.api.authentication import Gate
from web.docs import DOCS_ROUTES
from web.door_app import DOOR_PAGES, DOOR_ROUTES
from web.error_pages import error_page
from web.guest.responses import make_guest_limits
from web.listeners import renewal
from web.live_stream import stream_changes
from web.middleware import SECURE, Services, add_checks, in_environment, with_key
from web.monitoring import EXAMINER, OUTSIDE, Examiner, Health, Metrics
from web.portal.box import BACKING_UP, SAVING, BackingUp
from web.portal.cookies import BOX
from web.portal.guard import PASSWORDS, Passwords, guarded
from web.portal.integrations import SECRETS, Secrets
from web.portal.outbox import OUTBOX_ROUTES
from web.portal.routes import PORTAL_ROUTES
from web.portal.sign_in import public_portal_routes
from web.portal.update import RELEASES, ReleaseWatch
from web.portal.venue import follow_live_venue
from web.public_pages import CERTIFICATES, PUBLIC_ROUTES
from web.rendering import STATIC_ROUTES, prepare_pages
from web.routes import GUEST_ROUTES, PARTNER_ROUTE_TABLE
from web.sandbox import Sandbox

# The maximum number of searches by phone number per minute, for each terminal. At this rate, trying
# all 10,000 four-digit endings takes over five hours.
_PHONES_PER_MINUTE = 30
_STOP_WITHIN = 3.0  # seconds to wait for deliveries in progress when the application stops


def build_application(
    box: Box,
    certificates: Certificates | None = None,
    directory: DataDirectory | None = None,
) -> web.Application:
    """Build the application that serves both environments of `box`.

    `certificates` is None if the box does not serve TLS. `directory` is the data directory. If it
    is None, there are no backups and no nightly work. The caller must close `box`.
    """
    app = web.Application(client_max_size=BODY_LIMIT)

    async def end_feeds(_app: web.Application) -> None:
        """Close the live feeds, because an open feed would delay the shutdown."""
        for environment in box.environments:
            environment.feed.close()

    app[PRINCIPALS] = {}
    tls_port = box.settings.server.tls_port if certificates else 0
    add_checks(app, box, tls_port, error_page)
    app[PAIRING_TRIES] = pairing_tries(box.clock)
    app[SEARCH_PHONES] = RateLimit(box.clock, _PHONES_PER_MINUTE)
    app[CERTIFICATES] = certificates
    app[BOX] = box
    app[OUTSIDE] = OutsideWatch(box.live)
    app[EXAMINER] = Examiner(box, app[OUTSIDE])
    app[BACKING_UP] = BackingUp()
    app.on_cleanup.extend((app[EXAMINER].close, app[BACKING_UP].close))
    app[DOOR_PAGES] = {}
    app[PASSWORDS] = Passwords()
    app[SAVING] = asyncio.Lock()
    app[SECRETS] = Secrets(box.clock)
    prepare_pages(app)
    make_guest_limits(app, box)
    app.on_shutdown.append(end_feeds)
    app[RELEASES] = ReleaseWatch(box.settings.update.url, own_version())
    sandbox = Sandbox(box.test, box.clock, box.tokens)
    app.cleanup_ctx.append(sandbox.running)
    served = []
    for environment in box.environments:
        dependencies = sandbox.dependencies_of(environment)
        services = Services(
            environment=environment,
            gate=Gate(environment, box.clock),
            email_worker=EmailWorker(environment),
            dispatcher=Dispatcher(environment, dependencies),
        )
        box.on_settings.append(services.email_worker.follow)
        served.append(services)
        _add_routes(app, box, services, sandbox)
    app.cleanup_ctx.append(_background(box, served, certificates, directory))
    _add_shared_routes(app, box, served[0])
    app[READERS] = readers_of(box)
    app.cleanup_ctx.append(_run_scanners)
    return app


def _add_shared_routes(app: web.Application, box: Box, live: Services) -> None:
    """Add the public routes that exist only once, not in each environment."""
    health = Health(box)
    app.on_cleanup.append(health.close)
    shared = (
        *PUBLIC_ROUTES,
        ("GET", "/metrics", Metrics(box).show),
        ("GET", "/health", health.show_health),
        ("GET", "/ready", health.show_health),
        *STATIC_ROUTES,
        *public_portal_routes(box.clock),
    )
    for method, path, handler in shared:
        _add_readable(app, method, path, in_environment(handler, live), ANYBODY)
    _add(app, "GET", "/live", in_environment(stream_changes, live), Principal("browser"))


# `/v1/webhooks/test` is a call of its own, so the methods for an id are not allowed there.
_ID = "{id:(?!test$)[^/]+}"


def _add_routes(app: web.Application, box: Box, services: Services, sandbox: Sandbox) -> None:
    """Add one environment's routes. Only the test environment has the sandbox and outbox."""
    prefix, is_test = services.environment.prefix, services.environment is box.test
    for route in (*PARTNER_ROUTE_TABLE, *(sandbox.key_routes if is_test else ())):
        handler = with_key(route.handler, route.scope, services, route.budget)
        principal = Principal("key", route.scope)
        path = prefix + route.path.replace("{id}", _ID)
        _add_readable(app, route.method, path, handler, principal)
    for method, path, handler in TERMINAL_ROUTES:
        public = in_environment(handler, services, app[SECURE].demand)
        _add_readable(app, method, prefix + path, public, Principal("terminal"))
    for method, path, handler in (*DOOR_ROUTES, *GUEST_ROUTES, *DOCS_ROUTES):
        public = in_environment(handler, services, app[SECURE].redirect)
        _add_readable(app, method, prefix + path, public, ANYBODY)
    for page in PORTAL_ROUTES:
        if not (is_test and page.live_only):
            handler, principal = guarded(page, services, box.live), Principal("staff", page.role)
            _add(app, page.method, prefix + page.path, handler, principal)
    if is_test:
        for method, path, handler in (*OUTBOX_ROUTES, *sandbox.open_routes):
            _add_readable(app, method, path, in_environment(handler, services), ANYBODY)


def _add(
    app: web.Application, method: str, path: str, handler: Handler, principal: Principal
) -> None:
    """Add a route and declare who may call it."""
    app.router.add_route(method, path, handler)
    app[PRINCIPALS][method, path] = principal


def _add_readable(
    app: web.Application, method: str, path: str, handler: Handler, principal: Principal
) -> None:
    """Add a route as `_add` does. If its method is GET, also accept HEAD.

    Programs that show a preview of a link send HEAD requests.
    """
    _add(app, method, path, handler, principal)
    if method == "GET":
        _add(app, "HEAD", path, handler, principal)


def _background(
    box: Box,
    served: Sequence[Services],
    certificates: Certificates | None,
    directory: DataDirectory | None,
) -> Callable[[web.Application], AsyncIterator[None]]:
    """Return a cleanup context that starts the background jobs, and later stops them."""
    scheduler = Scheduler(box.clock)
    erasures = [Erasures(services.environment) for services in served]
    jobs = [heartbeat_job(box.live.database), *(erasure.job for erasure in erasures)]
    retentions = []
    for services in served:
        retentions.append(Retention(services.environment))
        states = make_reservation_jobs(services.environment)
        jobs += (retentions[-1].job, services.email_worker.job, states)
        if certificates is not None and services.environment is box.live:
            live = box.live.database
            jobs.append(renewal(certificates, live))
            jobs.append(Acme(box.live, certificates).job)
    if directory is not None:
        night = NightlyWork(box, retentions)
        jobs += (night.job, FrequentBackups(box, night.busy).job)
        jobs.append(BackupCopies(box).job)

    async def run(app: web.Application) -> AsyncIterator[None]:
        with suppress(Unavailable):  # the disk may be full
            await follow_live_venue(box)
        for services, erasure in zip(served, erasures, strict=True):
            # A restored backup may contain guests' data that was erased after the backup was made.
            # Erase this data again before anything is sent.
            await erasure.start()
            await services.dispatcher.start()
            await services.email_worker.start()
        with suppress(Unavailable):
            await box.live.database.write(forget_observations)
        mirror = await start_mirror(box.live.database, box.settings.mirror)
        scheduler.start(*jobs, *mirror, app[OUTSIDE].job, app[EXAMINER].job)
        yield
        await scheduler.close()
        with suppress(Unavailable):
            await box.live.database.write(forget_observations)
        # Close in parallel, because each may wait for a remote server and the box must stop within
        # 10 s.
        await asyncio.gather(
            *(services.email_worker.close() for services in served),
            *(services.dispatcher.close(_STOP_WITHIN) for services in served),
        )
        for services in served:
            await services.gate.close()

    return run


async def _run_scanners(app: web.Application) -> AsyncIterator[None]:
    """Run the scanners attached to this computer. At shutdown, stop them before all other jobs."""
    await app[READERS].start()
    yield
    await app[READERS].close()
