"""Detect passwords that attackers try first (docs/security.md, S7).

Most leaked passwords consist of one or two common words with additions. password_strength.txt
lists words, names, cities and keyboard rows. The rules below cover additions and changes: digits,
years, symbols and leetspeak.
"""

import re
from functools import cache
from pathlib import Path

_PRODUCT = "venuebox"
_DIFFERENT_MIN = 4
_YEARS = re.compile(r"(?:19|20)\d\d")
_LEET = str.maketrans("@4310$5!7+8", "aaeiossittb")
_AFFIXES = " 0123456789!?.,;:@#*-_+=$€%&/()'\""
_RUN_MIN = 3  # minimum number of adjacent keys that count as a run
_NUMBER_MAX = 12  # dates and phone numbers have up to this many digits
_OUTSIDE_RUNS_MIN = 4  # a password needs at least this many characters that are not part of a run


def is_guessable(password: str, names: tuple[str, ...]) -> bool:
    """Whether an attacker would try `password` early.

    `names` are the names of the account and the venue. They are treated like listed words, so a
    password that consists of a doubled or reversed name, or of a name with digits, is guessable.
    """
    lower = password.casefold()
    words = {_PRODUCT} | _listed()[0] | {part for name in names for part in _spellings(name)}
    return (
        len(set(lower)) < _DIFFERENT_MIN
        or _repeats(lower)
        or (lower.isdecimal() and len(lower) <= _NUMBER_MAX)
        or len(_without_runs(lower)) < _OUTSIDE_RUNS_MIN
        or any(_is_made_of(core, words) for core in _cores(lower))
    )


def _cores(lower: str) -> set[str]:
    """Return what may remain of the password after additions are removed.

    Additions are years, and digits and symbols at either end. They are removed both with and
    without replacing leetspeak with letters. Each result is also returned without separators, and
    all of these results are also returned in reverse.
    """
    found = {lower.strip(_AFFIXES), _YEARS.sub("", lower).strip(_AFFIXES)}
    found |= {core.translate(_LEET) for core in found}
    # These endings are probably suffixes rather than leetspeak.
    for ending in ("!", "1", "12", "123"):
        found.add(lower.removesuffix(ending).translate(_LEET))
    found.add(lower.translate(_LEET).strip(_AFFIXES))
    # Also add each result with its spaces, underscores, dots and hyphens removed.
    found |= {re.sub(r"[\s_.\-]", "", core) for core in found}
    return {core for core in found | {core[::-1] for core in found} if core}


def _is_made_of(core: str, words: set[str]) -> bool:
    """Whether `core` consists of one or two of `words`, or of one followed by a simple addition.

    An addition is simple if it has fewer than three characters that are not part of a run.
    """
    if core in words:
        return True
    return any(
        core[:cut] in words and (core[cut:] in words or len(_without_runs(core[cut:])) < _RUN_MIN)
        for cut in range(_RUN_MIN, len(core))
    )


def _repeats(lower: str) -> bool:
    """Whether the password repeats a group of up to four characters, such as `abcabcabc`."""
    return any(
        lower == (lower[:period] * len(lower))[: len(lower)]
        for period in range(1, min(5, len(lower) // 2 + 1))
    )


def _without_runs(text: str) -> str:
    """Return `text` without runs of adjacent keys, such as `qwert`, or of one repeated key."""
    outside, start = "", 0
    while start < len(text):
        end = start + 1
        while end < len(text) and _is_run(text[start : end + 1]):
            end += 1
        if end - start < _RUN_MIN:
            end = start + 1
            outside += text[start]
        start = end
    return outside


def _is_run(piece: str) -> bool:
    if len(set(piece)) == 1:
        return True
    return any(piece in row or piece[::-1] in row for row in _listed()[1])


@cache
def _listed() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return (words, keyboard rows) from password_strength.txt."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    words, rows = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).split("\n\n")
    return frozenset(words.split()), tuple(rows.split())


def _spellings(name: str) -> set[str]:
    lower = name.casefold()
    parts = lower.split()
    joined = {"".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)}
    return {part for part in joined if len(part) >= _RUN_MIN} | {lower, "-".join(parts)} - {""}
