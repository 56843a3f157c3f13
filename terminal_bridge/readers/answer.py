"""The answer to a scan as a reader gives it: bytes for a device, one line for a program."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verdict comes to. `party` is arrived/guests; "" where nobody is meant.

    `is_repeated`: the same code was shown a moment ago, and nothing was decided anew.
    """

    colour: str
    result: str
    table: str = ""
    party: str = ""
    sentence: str = ""
    is_repeated: bool = field(default=False, compare=False)


Decide = Callable[[str], Awaitable[Answer]]
ARRIVALS = 1  # a reading lets one person in: a turnstile opens for one
TROUBLE = Answer("grey", "error", sentence="Incident : scannez de nouveau.")


def answer_of(verdict: Mapping[str, Any]) -> Answer:
    """The answer that a verdict of the wire stands for."""
    reservation = verdict.get("reservation") or {}
    say = verdict.get("say") or {}
    return Answer(
        colour=verdict["colour"],
        result=verdict["result"],
        table=(reservation.get("table") or {}).get("name") or "",
        party=f"{reservation['arrived']}/{reservation['guests']}" if reservation else "",
        sentence=say.get("staff") or "",
    )


def line_of(answer: Answer, *, is_same: bool = False) -> bytes:
    """`GREEN checked_in T5 1/4 Entrée validée…`: five fields, a space between two.

    The first is `SAME` in place of the colour when nothing was decided anew. Spaces in the
    table's name are written `_`; `-` stands for no table and for no party. Only the fifth
    field, the sentence for the staff, has spaces. UTF-8, ended by CR LF.
    """
    fields = (
        "SAME" if is_same else answer.colour.upper(),
        answer.result,
        "_".join(answer.table.split()) or "-",
        answer.party or "-",
        " ".join(answer.sentence.split()) or "-",
    )
    return f"{' '.join(fields)}\r\n".encode("utf-8", "replace")
