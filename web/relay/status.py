"""The relay's status page, metrics and health, for requests from this machine or with a token."""

from collections.abc import Iterator
from hmac import compare_digest
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from appliance.clock import optional_instant
from appliance.http.request import is_loopback
from appliance.http.security_headers import COMMON_HEADERS
from web.middleware import requested_name
from web.monitoring import render_metrics
from web.relay.releases import is_stopped, list_stages, read_report
from web.relay.router import Router
from web.relay.server import Boxes
from web.relay.storage import used_bytes
from web.rendering import make_templates

_GAUGES = {
    "box_connected": "1 if the box is connected",
    "open_connections": "connections passed on now",
    "backup_bytes": "bytes of backups that the box keeps",
}
_COUNTERS = {
    "dials": "times the box has dialled in",
    "connections": "connections passed on",
    "refused": "connections refused: the box was away or had too many",
    "bytes_in": "bytes from the public to the box",
    "bytes_out": "bytes from the box to the public",
}


def build_status(boxes: Boxes, router: Router, token: str) -> web.Application:
    """Build the application. A request must come from this machine or contain `token`.

    If `token` is "", only requests from this machine are answered.
    """
    template = make_templates().get_template("relay.html")

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        has_token = bool(token) and compare_digest(given.encode("utf-8", "replace"), token.encode())
        # Check the Host header too. In DNS rebinding, another site's name resolves to loopback.
        host = requested_name(request)
        is_here = is_loopback(request.remote or "") and (host == "localhost" or is_loopback(host))
        if not has_token and not is_here:
            raise web.HTTPNotFound
        return await handler(request)

    async def show_page(_request: web.Request) -> web.Response:
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        headers = {**COMMON_HEADERS, "Content-Security-Policy": policy}
        text = template.render(boxes=_list_boxes(boxes), stages=_list_stages(boxes))
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def show_metrics(_request: web.Request) -> web.Response:
        body, content_type = render_metrics(lambda: collect_metrics(boxes, router))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def show_health(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app = web.Application(middlewares=[check])
    app.router.add_get("/", show_page)
    app.router.add_get("/metrics", show_metrics)
    app.router.add_get("/health", show_health)
    return app


def collect_metrics(boxes: Boxes, router: Router) -> Iterator[Any]:
    """Yield every metric of the relay."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    yield CounterMetricFamily(
        "venuebox_relay_closed_heads",
        "connections closed because their first bytes were late, malformed or named no box",
        value=router.closed_heads,
    )
    measured = {name: _measure(boxes, name) for name in boxes.names}
    for kind, metrics in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
        for metric, meaning in metrics.items():
            family = kind(f"venuebox_relay_{metric}", meaning, labels=["name"])
            for name, values in measured.items():
                family.add_metric([name], values[metric])
            yield family


def _measure(boxes: Boxes, name: str) -> dict[str, int]:
    traffic = boxes.traffic[name]
    return {
        "box_connected": int(boxes.connection(name) is not None),
        "open_connections": traffic.open,
        "backup_bytes": used_bytes(boxes.enrolments.backups / name),
        **{counter: getattr(traffic, counter) for counter in _COUNTERS},
    }


def _list_boxes(boxes: Boxes) -> Iterator[tuple[object, ...]]:
    for name in boxes.names:
        traffic = boxes.traffic[name]
        since = optional_instant(traffic.connected_at) or ""
        report = read_report(boxes.enrolments, name)
        yield name, boxes.connection(name) is not None, since, traffic, report


def _list_stages(boxes: Boxes) -> Iterator[tuple[object, ...]]:
    for machine, stage in list_stages(boxes.enrolments).items():
        yield machine, stage, is_stopped(boxes.enrolments, stage)
