"""A check: what was found about one thing, in three languages, and what mends it."""

from dataclasses import dataclass
from typing import Literal

from appliance.doctor.arabic import in_arabic

Status = Literal["ok", "warn", "fail"]
_RANK = ("ok", "warn", "fail")


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence in three languages."""

    fr: str
    en: str
    ar: str


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `remedy` is None where there is nothing to do."""

    name: str
    status: Status
    finding: Said
    remedy: Said | None = None


def say(fr: str, en: str, **blanks: object) -> Said:
    """A sentence of the checks, its `{name}` filled from `blanks`; arabic.py has the third."""
    return Said(fr.format(**blanks), en.format(**blanks), in_arabic(en, blanks))


def well(name: str, /, fr: str, en: str, **blanks: object) -> Check:
    """Nothing to do."""
    return Check(name, "ok", say(fr, en, **blanks))


def warn(name: str, /, fr: str, en: str, remedy_fr: str, remedy_en: str, **blanks: object) -> Check:
    """The evening goes on, and somebody should see to it."""
    return Check(name, "warn", say(fr, en, **blanks), say(remedy_fr, remedy_en, **blanks))


def fail(name: str, /, fr: str, en: str, remedy_fr: str, remedy_en: str, **blanks: object) -> Check:
    """Something does not work, or will not for long."""
    return Check(name, "fail", say(fr, en, **blanks), say(remedy_fr, remedy_en, **blanks))


def worst(checks: list[Check]) -> Status:
    """The status of them all."""
    return max((check.status for check in checks), key=_RANK.index, default="ok")
