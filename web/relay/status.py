"""The relay's status page, metrics and health, for requests from this machine or with a token."""

from collections.abc import Iterator
from hmac import compare_digest
from html import escape
from typing import Any

from aiohttp import web

from appliance.clock import format_instant
from appliance.http.request import (
    is_loopback,
)
from appliance.http.security_headers import COMMON_HEADERS
from web.middleware import requested_name
from web.monitoring import render_metrics
from web.relay.releases import is_stopped, list_stages, read_report
from web.relay.router import Router
from web.relay.server import Boxes
from web.relay.storage import used_bytes

_STYLE = "body{font-family:sans-serif}td,th{padding:.3em 1em;text-align:left}"
_COLUMNS = (
    "Name", "State", "Connected since", "Open", "Total", "Refused", "Bytes in", "Bytes out",
    "Latest update",
)  # fmt: skip


def build_status(boxes: Boxes, router: Router, token: str) -> web.Application:
    """Build the application. A request must come from this machine or contain `token`.

    If `token` is "", only requests from this machine are answered.
    """

    def check(request: web.Request) -> None:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and compare_digest(given.encode("utf-8", "replace"), token.encode()):
            return
        # Check the Host header too. In DNS rebinding, another site's name resolves to loopback.
        host = requested_name(request)
        is_here = is_loopback(request.remote or "") and (host == "localhost" or is_loopback(host))
        if not is_here:
            raise web.HTTPNotFound

    async def show_page(request: web.Request) -> web.Response:
        check(request)
        rows = "".join(f"<tr>{_cells('td', _row(boxes, name))}</tr>" for name in boxes.names)
        text = (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>venuebox relay</title>"
            f"<style>{_STYLE}</style><h1>venuebox relay</h1>"
            f"<table><tr>{_cells('th', _COLUMNS)}</tr>{rows}</table>"
            f"<ul>{_list_releases(boxes)}</ul>"
        )
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        headers = {**COMMON_HEADERS, "Content-Security-Policy": policy}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def show_metrics(request: web.Request) -> web.Response:
        check(request)
        body, content_type = render_metrics(lambda: collect_metrics(boxes, router))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def show_health(request: web.Request) -> web.Response:
        check(request)
        return web.json_response({"status": "ok"})

    app = web.Application()
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
    families = {
        "up": GaugeMetricFamily(
            "venuebox_relay_box_connected", "1 if the box is connected", labels=["name"]
        ),
        "open": GaugeMetricFamily(
            "venuebox_relay_open_connections", "connections passed on now", labels=["name"]
        ),
        "backups": GaugeMetricFamily(
            "venuebox_relay_backup_bytes", "bytes of backups that the box keeps", labels=["name"]
        ),
    }
    counters = {
        kind: CounterMetricFamily(f"venuebox_relay_{kind}", meaning, labels=["name"])
        for kind, meaning in (
            ("dials", "times the box has dialled in"),
            ("connections", "connections passed on"),
            ("refused", "connections refused: the box was away or had too many"),
            ("bytes_in", "bytes from the public to the box"),
            ("bytes_out", "bytes from the box to the public"),
        )
    }
    for name in boxes.names:
        traffic = boxes.traffic[name]
        families["up"].add_metric([name], boxes.connection(name) is not None)
        families["open"].add_metric([name], traffic.open)
        families["backups"].add_metric([name], used_bytes(boxes.enrolments.backups / name))
        for kind, family in counters.items():
            family.add_metric([name], getattr(traffic, kind))
    yield from (*families.values(), *counters.values())


def _row(boxes: Boxes, name: str) -> tuple[object, ...]:
    traffic = boxes.traffic[name]
    since = "" if traffic.connected_at is None else format_instant(traffic.connected_at)
    report = read_report(boxes.enrolments, name)
    state = "away" if boxes.connection(name) is None else "connected"
    return (
        name, state, since, traffic.open, traffic.connections, traffic.refused, traffic.bytes_in,
        traffic.bytes_out, f"{report.version} {report.stage}" if report else "",
    )  # fmt: skip


def _list_releases(boxes: Boxes) -> str:
    lines = []
    for machine, stage in list_stages(boxes.enrolments).items():
        state = "stopped by a failure" if is_stopped(boxes.enrolments, stage) else "offered"
        lines.append(
            f"Release {stage.version} for {machine}: {state}, {stage.share} % of the boxes"
        )
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _cells(tag: str, values: tuple[object, ...]) -> str:
    return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values)
