"""The link below a reminder: no more of them, please (RFC 2369, RFC 8058)."""

from aiohttp import web

from appliance.actions.remind import stop_reminders
from appliance.store.reservations import find_reservation
from web.guest.answer import dead_link, environment_of, page


async def ask(request: web.Request) -> web.Response:
    """`GET /no-reminders/{token}`: a button. Looking changes nothing, for previews look too."""
    if _find(request) is None:
        return dead_link(request)
    return page(request, "guest/no_reminders.html", {"done": False})


async def stop(request: web.Request) -> web.Response:
    """`POST /no-reminders/{token}`: from the button, or from the mail program in one click.

    From wherever it comes: who has the letter has its link.
    """
    reservation_id = _find(request)
    if reservation_id is None:
        return dead_link(request)
    await environment_of(request).database.write(stop_reminders, reservation_id)
    return page(request, "guest/no_reminders.html", {"done": True})


def _find(request: web.Request) -> str | None:
    environment = environment_of(request)
    id_ = environment.keyring.read_access_token(request.match_info["token"])
    return id_ if id_ and environment.database.peek(find_reservation, id_) else None


NO_REMINDERS_ROUTES = (
    ("GET", "/no-reminders/{token:.*}", ask),
    ("POST", "/no-reminders/{token:.*}", stop),
)
