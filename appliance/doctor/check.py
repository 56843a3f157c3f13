"""What a check of `venuebox doctor` examines, and what it says."""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import apsw

from appliance.clock import Clock, ZoneDatabase, format_instant
from appliance.clock_trust import kernel_is_synchronised
from appliance.data_directory import DataDirectory
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.i18n import Language, isolate
from appliance.i18n import mark as _
from appliance.settings import Settings
from appliance.store.connection import Reader
from appliance.store.examination import opened_for_reading, read_schema
from appliance.store.migrate import list_migrations
from appliance.store.unusable import is_unopenable
from appliance.webhooks.network import SystemNetwork

HEALTH_DEADLINE = 2.0
Status = Literal["ok", "warn", "fail"]
_RANK = ("ok", "warn", "fail")

# Remedies of several checks.
ASK = _("Ask whoever installed the box: %(command)s")
SET = _("Set %(setting)s in the portal or in settings.toml.")
RESTART = _("Restart the box. If that changes nothing, check %(setting)s in settings.toml.")
RESTORE = _(
    "Tell whoever installed the box at once: the last backup has to be restored (%(command)s)."
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """An English message of the catalogues, and what fills its `%(name)s`.

    A tuple of sentences among the values becomes a list. `english` replaces the message for
    readers of English.
    """

    message: str
    values: Mapping[str, object] = field(default_factory=dict)
    english: str = ""

    def text(self, language: Language) -> str:
        """The sentence in that language. In Arabic each value is an isolate: mostly it is Latin."""
        if self.english and language.code == "en":
            return self.english
        filled = {name: _shown(value, language) for name, value in self.values.items()}
        return language.gettext(self.message, **filled)


def _shown(value: object, language: Language) -> str | None:
    if isinstance(value, tuple):
        texts = dict.fromkeys(sentence.text(language) for sentence in value)
        return language.gettext("; ").join(texts)
    text = str(value)
    return isolate(text) if text and language.direction == "rtl" else text


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check. `remedy` is None where there is nothing to do."""

    status: Status
    finding: Sentence
    remedy: Sentence | None = None
    name: str = ""


def ok(finding: str, /, **values: object) -> Check:
    """Nothing to do."""
    return Check("ok", Sentence(finding, values))


def warn(finding: str, remedy: str, /, **values: object) -> Check:
    """The evening goes on, but somebody should look into it."""
    return Check("warn", Sentence(finding, values), Sentence(remedy, values))


def fail(finding: str, remedy: str, /, **values: object) -> Check:
    """Something does not work, or will not for long."""
    return Check("fail", Sentence(finding, values), Sentence(remedy, values))


def at_least(
    found: int, wanted: int, least: int, finding: str, remedy: str, /, **values: object
) -> Check:
    """Ok if `found` reaches `wanted`, a failure below `least`."""
    if found >= wanted:
        return ok(finding, **values)
    return (fail if found < least else warn)(finding, remedy, **values)


def utc(at: int) -> str:
    """`2026-11-21 19:05 UTC`, of ms since 1970."""
    return f"{format_instant(at)[:16].replace('T', ' ')} UTC"


def worst(checks: list[Check]) -> Status:
    """The status of them all."""
    return max((check.status for check in checks), key=_RANK.index, default="ok")


class NotExamined(Exception):
    """Another check tells why this one has nothing to look at."""


class Unopenable(NotExamined):
    """A database is there, and SQLite cannot make what it needs beside it."""


def ask_health(url: str) -> int | None:
    """The status that the box on this machine answers, or None when nothing does in time."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HEALTH_DEADLINE) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


@dataclass(frozen=True, slots=True)
class Machine:
    """The outside that checks ask. Tests hand in another."""

    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs
    device: Callable[[Path], int] = lambda path: path.stat().st_dev
    proc: Path = Path("/proc")
    is_synchronised: Callable[[], bool | None] = kernel_is_synchronised
    has_way_out: Callable[[], bool] = SystemNetwork().has_way_out
    ask: Callable[[str], int | None] = ask_health


@dataclass(frozen=True, slots=True)
class CheckContext:
    """A box, running or not. `settings` is the error if they cannot be read.

    `online` allows checks that connect to other machines.
    """

    directory: DataDirectory
    settings: Settings | str
    clock: Clock
    zones: ZoneDatabase
    online: bool = False
    machine: Machine = Machine()

    @property
    def runs(self) -> bool:
        """Whether a running box holds the other end of its pipe. Nothing is written into it."""
        try:
            os.close(os.open(self.directory.poke, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def known_settings(self) -> Settings:
        """The settings; NotExamined when they cannot be read."""
        if isinstance(self.settings, str):
            raise NotExamined
        return self.settings

    @contextmanager
    def file(self, environment: EnvironmentName) -> Iterator[Reader]:
        """The database of an environment as it is, read only. NotExamined when it is missing.

        Unopenable, which is NotExamined too, where nothing can be written beside it.
        """
        path = self.directory.database(environment)
        if not path.exists():
            raise NotExamined
        try:
            with opened_for_reading(path, self.clock, self.zones) as reader:
                yield reader
        except apsw.Error as error:
            if is_unopenable(error):
                raise Unopenable from None
            raise

    @contextmanager
    def rows(self, environment: EnvironmentName) -> Iterator[Reader]:
        """The same, for questions about rows: NotExamined where the schema is another."""
        with self.file(environment) as reader:
            if read_schema(reader) != list_migrations()[-1][0]:
                raise NotExamined
            yield reader

    def key(self) -> bytes:
        """The master key; NotExamined when it cannot be used."""
        try:
            return self.directory.master_key()
        except Trouble:
            raise NotExamined from None
