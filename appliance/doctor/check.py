"""A check: what was found about one thing, in three languages, and what mends it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from appliance.doctor.arabic import in_arabic

Status = Literal["ok", "warn", "fail"]
_RANK = ("ok", "warn", "fail")


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence in three languages.

    `french` and `english` are it without what fills its `blanks`; words.py knows it by its English.
    """

    fr: str
    en: str
    ar: str
    french: str = field(default="", compare=False)
    english: str = field(default="", compare=False)
    blanks: Mapping[str, object] = field(default_factory=dict, compare=False)

    def texts(self) -> dict[str, str]:
        """By the codes of the languages."""
        return {"fr": self.fr, "en": self.en, "ar": self.ar}


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `remedy` is None where there is nothing to do."""

    name: str
    status: Status
    finding: Said
    remedy: Said | None = None


def say(fr: str, en: str, **blanks: object) -> Said:
    """A sentence of the checks, its `{name}` filled from `blanks`; arabic.py has the third."""
    filled = fr.format(**blanks), en.format(**blanks), in_arabic(en, blanks)
    return Said(*filled, french=fr, english=en, blanks=blanks)


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
