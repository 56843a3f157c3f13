"""The steps of the first start: which are behind, which comes next, and the page around each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from aiohttp import web

from appliance.actions.set_up import STEPS, pass_step
from appliance.errors import Refusal
from appliance.i18n import mark as _
from appliance.store.setup import find_setup
from web.portal.answer import language_of, portal_page, refused_in_place, see_other
from web.portal.box.saved import saved_settings, waits_for_restart
from web.portal.context import HOUSE
from web.portal.forms import field_error, read_form

_LABELS: Mapping[str, str] = {
    "venue": _("The venue"),
    "tables": _("Tables"),
    "slots": _("Hours"),
    "mail": _("Mail"),
    "address": _("Address"),
    "phone": _("First phone"),
}
_LAST = "ready"


@dataclass(frozen=True, slots=True)
class Step:
    """A step in the row of steps; `label` is the English of the catalogues."""

    name: str
    label: str
    is_behind: bool


async def step_page(
    request: web.Request,
    step: str,
    values: dict[str, object],
    refusal: Refusal | None = None,
    fields: Collection[str] = (),
) -> web.Response:
    """The page of a step, with the row of all of them above it.

    What was refused is said beside the one of the `fields` that it is about, or above them all.
    """
    found = await request[HOUSE].database.read(find_setup)
    behind = found.steps if found else ()
    frame: dict[str, object] = {
        "steps": [Step(name, _LABELS[name], name in behind) for name in STEPS],
        "step": step,
        "number": STEPS.index(step) + 1 if step in STEPS else None,
        "problem": None,
    }
    if refusal is not None:
        frame |= refused_in_place(refusal, language_of(request), fields)
    status = 200 if refusal is None else refusal.status
    return portal_page(request, f"portal/setup/{step}.html", {**frame, **values}, status)


async def go_on(request: web.Request, step: str, note: str | None = None) -> web.StreamResponse:
    """`step` is behind: to the one after it."""
    await request[HOUSE].database.write(pass_step, step)
    place = STEPS.index(step) + 1
    return see_other(request, f"/setup/{STEPS[place] if place < len(STEPS) else _LAST}", note)


async def leave_for_later(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/later`: a step can wait, and be done any day."""
    step = (await read_form(request)).text("step")
    if step not in STEPS:
        raise field_error("step", "une étape.", "a step.")
    return await go_on(request, step)


async def show_ready(request: web.Request) -> web.Response:
    """`GET /portal/setup/ready`: what the box can do now."""
    values: dict[str, object] = {
        "waits": waits_for_restart(request),
        "books": saved_settings(request).booking.enabled,
        "book": f"{request[HOUSE].links.base}/book",
    }
    return await step_page(request, _LAST, values)
