"""The room's words: what an outcome, a state and a condition mean to who has to act on it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.actions.deactivate_endpoint import SWITCHED_OFF
from appliance.i18n import Language
from appliance.model.endpoint import Endpoint
from appliance.store.conditions import Condition
from appliance.webhooks.conditions import (
    CLOCK_HELD,
    CLOCK_UNCONFIRMED,
    ENDPOINT_BLOCKED,
    OFFLINE,
    SKEW_WARNING_S,
    UNWRITTEN,
)


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, its colour (good, wait, bad or none), and what to do about it."""

    text: str
    kind: str = ""
    remedy: str = ""


class Moments:
    """Instants in the venue's time, in words."""

    def __init__(self, language: Language, zone: tzinfo, now: int) -> None:
        self._language = language
        self._zone = zone
        self._now = now

    def __call__(self, at: int) -> str:
        """`today, 19:30`, `sat. 21 Nov, 19:30`."""
        moment, now = self._local(at), self._local(self._now)
        if moment.date() == now.date():
            return self._language.gettext("today, %(time)s", time=f"{moment:%H:%M}")
        day = self._language.short_date(moment.date(), year=moment.year != now.year)
        return self._language.gettext("%(day)s, %(time)s", day=day, time=f"{moment:%H:%M}")

    def to_the_second(self, at: int) -> str:
        """The same with seconds: of attempts there may be two in a minute."""
        return f"{self(at)}:{self._local(at):%S}"

    def _local(self, at: int) -> datetime:
        return datetime.fromtimestamp(at / 1000, UTC).astimezone(self._zone)


def outcome_words(code: str | None, status: int | None, language: Language) -> str:
    """What an attempt came to."""
    _ = language.gettext
    if code is None:
        return _("Not tried yet")
    if code.startswith("http_"):
        return _("Answered with status %(status)s", status=status or code[5:])
    words = {
        "delivered": _("Taken, status %(status)s", status=status or 200),
        "timeout": _("No answer within 10 seconds"),
        "conn_refused": _("Connection refused: nothing listens there"),
        "conn_timeout": _("No connection in time"),
        "reset": _("The receiver hung up"),
        "unreachable": _("The receiver cannot be reached"),
        "no_route": _("The box has no way there"),
        "dns_nxdomain": _("Its host name does not exist"),
        "dns_temp": _("Its host name could not be looked up"),
        "tls_cert": _("Its certificate is not trusted"),
        "tls_other": _("No secure connection came about"),
        "protocol": _("Its answer is not HTTP"),
        "blocked": _("Not sent: this address is not allowed"),
        "box_offline": _("The box was offline"),
        "failed": _("Not sent: an accident in the box, see its log"),
    }
    return words.get(code, code)


def state_words(state: str, language: Language) -> Said:
    """Where a delivery stands."""
    _ = language.gettext
    return {
        "pending": Said(_("Waiting"), "wait"),
        "delivered": Said(_("Delivered"), "good"),
        "dead": Said(_("Dead"), "bad"),
        "cancelled": Said(_("Not to be sent")),
    }[state]


def health_of(endpoint: Endpoint, conditions: Iterable[Condition], language: Language) -> Said:
    """How an endpoint is doing, in one word or two."""
    _ = language.gettext
    noted = {c.name for c in conditions if c.subject == endpoint.id}
    if SWITCHED_OFF in noted:
        remedy = _(
            "A partner deactivated this endpoint with a key that had not registered it. "
            "The security log says which. Activate it again, or leave it deactivated."
        )
        return Said(_("Deactivated by another key"), "bad", remedy)
    if not endpoint.active:
        return Said(_("Deactivated"))
    if ENDPOINT_BLOCKED in noted or endpoint.last_outcome == "blocked":
        remedy = _("Nothing is sent there. If it is in the house, allow it with "
                   "webhooks.allow_networks in settings.toml.")  # fmt: skip
        return Said(_("Blocked"), "bad", remedy)
    if endpoint.failures_in_a_row:
        return Said(_("Failing"), "bad")
    if endpoint.last_success_at is None:
        return Said(_("Nothing sent yet"))
    return Said(_("In order"), "good")


def skew_words(endpoint: Endpoint, language: Language) -> Said | None:
    """What the receiver's clock says; None when it never told."""
    _, skew = language.gettext, endpoint.clock_skew_s
    if skew is None:
        return None
    if abs(skew) <= SKEW_WARNING_S:
        return Said(_("agrees with ours"), "good")
    if skew > 0:
        said = _("%(seconds)s s ahead of ours", seconds=skew)
    else:
        said = _("%(seconds)s s behind ours", seconds=-skew)
    return Said(said, "wait", _("From 300 s on it refuses every signature."))


def banners(conditions: Collection[Condition], language: Language) -> list[Said]:
    """What is our own fault just now: one plain sentence each, and what to do."""
    _ = language.gettext
    words = {
        OFFLINE: Said(
            _("The box is offline: webhooks wait, and no receiver is charged for it."), "wait",
            _("Look at the router and its cable. What waits goes out by itself afterwards."),
        ),
        CLOCK_HELD: Said(
            _("The box does not trust its clock: webhooks wait, for receivers would refuse them."),
            "wait", _("Set the date of the box, or let it reach a time server."),
        ),
        CLOCK_UNCONFIRMED: Said(
            _("No time server has confirmed the clock of the box; webhooks are sent all the same."),
            "wait", _("If receivers refuse signatures, look at the date of the box."),
        ),
        CLOCK_LEAPT: Said(
            _("The clock of the box leapt, and nothing confirms it: nothing expires meanwhile."),
            "wait",
            _("Let it reach a time server. If its date is right, the owner says so on the page of "
              "the box."),
        ),
        UNWRITTEN: Said(
            _("The disk takes nothing: what came of webhooks cannot be written, so they wait."),
            "bad", _("Make room on the disk of the box. Nothing is lost meanwhile."),
        ),
    }  # fmt: skip
    return [words[c.name] for c in conditions if c.name in words]
