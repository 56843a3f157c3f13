"""A check: what was found about one thing, in French and English, and what mends it."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]
_RANK = ("ok", "warn", "fail")


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence in two languages."""

    fr: str
    en: str


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `remedy` is None where there is nothing to do."""

    name: str
    status: Status
    finding: Said
    remedy: Said | None = None


def well(name: str, fr: str, en: str) -> Check:
    """Nothing to do."""
    return Check(name, "ok", Said(fr, en))


def warn(name: str, fr: str, en: str, remedy_fr: str, remedy_en: str) -> Check:
    """The evening goes on, and somebody should see to it."""
    return Check(name, "warn", Said(fr, en), Said(remedy_fr, remedy_en))


def fail(name: str, fr: str, en: str, remedy_fr: str, remedy_en: str) -> Check:
    """Something does not work, or will not for long."""
    return Check(name, "fail", Said(fr, en), Said(remedy_fr, remedy_en))


def worst(checks: list[Check]) -> Status:
    """The status of them all."""
    return max((check.status for check in checks), key=_RANK.index, default="ok")
