"""Which passwords are among the first that anyone would try (docs/security.md, S7).

Rules rather than a list: the thousands that lists hold are a few words, names, cities and keys in
a row, each with digits, years, signs or letters written as digits.
"""

import re
from itertools import pairwise

_PRODUCT = "venuebox"
_DIFFERENT_MIN = 4
_YEARS = re.compile(r"(?:19|20)\d\d")
_LEET = str.maketrans("@4310$5!7+8", "aaeiossittb")
_EDGES = " 0123456789!?.,;:@#*-_+=$€%&/()'\""

# What people type when nothing comes to mind: in English, French, and Arabic in Latin letters.
_WORDS = frozenset(
    """
    password passwort motdepasse passe pass passwd mdp secret secrets azerty qwerty qwertz admin
    administrator administrateur root user utilisateur guest invite test tester testing demo
    changeme default defaut letmein welcome bienvenue bonjour bonsoir salut hello coucou salam
    marhaba inchallah hamdoullah bismillah allah allahakbar mohamed mohammed muhammad iloveyou
    loveyou love lovely jetaime jtaime amour mamour cheri cherie monamour moncoeur habibi habibti
    princess princesse prince doudou loulou chouchou nounours bebe maman papa mama famille family
    soleil sunshine flower fleur papillon butterfly chocolat chocolate cookie monkey dragon shadow
    master superman batman spiderman pokemon naruto starwars football foot soccer basketball
    baseball barcelona barcelone realmadrid madrid liverpool chelsea arsenal juventus psg wac raja
    wydad rajacasablanca marseille paris lyon france maroc morocco maghrib algerie tunisie computer
    ordinateur internet google facebook instagram whatsapp samsung iphone apple windows microsoft
    android freedom liberte trustno whatever nothing rien michael michelle jennifer jessica ashley
    nicolas alexandre thomas julien camille marie sophie isabelle fatima fatimazahra khadija aicha
    zineb salma yasmine imane hajar meryem sara sarah amina ahmed hassan hussein youssef omar ali
    mehdi karim rachid said abdellah mustapha hamza ayoub anas ilyas amine nabil
    restaurant resto hotel riad cafe bar table tables reservation reservations terrasse cuisine
    chef manager serveur gerant patron accueil reception spectacle soiree evening venue box
    january february march april june july august september october november december
    janvier fevrier mars avril juin juillet aout septembre octobre novembre decembre
    lundi mardi mercredi jeudi vendredi samedi dimanche monday friday saturday sunday
    printemps hiver automne summer winter spring autumn
    casablanca casa rabat marrakech marrakesh kech fes fez tanger tangier agadir meknes oujda
    kenitra tetouan sale temara safi mohammedia khouribga eljadida beni mellal benimellal nador taza
    settat essaouira ouarzazate laayoune dakhla chefchaouen ifrane larache berrechid errachidia
    taroudant guelmim asilah
    """.split()  # noqa: SIM905 - words are easier to read and to add to than quotes
)

# Rows and the slants between them, on the keyboards of the country; read backwards too.
_WALKS = (
    "01234567890", "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm",
    "azertyuiop", "qsdfghjklm", "wxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "1aqw2zsx3edc4rfv5tgb6yhn7uj8ik9ol0p",
    "qazwsxedcrfvtgbyhnujmikolp", "aqwzsxedcrfvtgbyhnujikolpm",
    "1q2w3e4r5t6y7u8i9o0p", "1a2z3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0", "a1z2e3r4t5y6u7i8o9p0",
    "1z2x3c4v5b6n7m", "123qwe456rty789uio", "123aze456rty789uio",
    "147258369", "159357", "789456123",
)  # fmt: skip
_RUN_MIN = 3
_NUMBER_MAX = 12  # a date, a phone number
_UNUSUAL = 4  # so many characters that fit no rule make a password worth keeping


def is_guessable(password: str, names: tuple[str, ...]) -> bool:
    """Whether `password` is among the first that anyone would try.

    `names` are the person's and the venue's: alone, doubled, reversed or with digits they are
    no secret.
    """
    lower = password.casefold()
    words = {_PRODUCT} | _WORDS | {part for name in names for part in _spellings(name)}
    return (
        len(set(lower)) < _DIFFERENT_MIN
        or _repeats(lower)
        or (lower.isdecimal() and len(lower) <= _NUMBER_MAX)
        or len(_without_walks(lower)) < _UNUSUAL
        or any(_is_made_of(core, words) for core in _cores(lower))
    )


def _cores(lower: str) -> set[str]:
    """The letters without what is put around them, also with digits read as letters."""
    found = {lower.strip(_EDGES), _YEARS.sub("", lower).strip(_EDGES)}
    found |= {core.translate(_LEET) for core in found}
    for ending in ("!", "1", "12", "123"):  # what was added at the end is no letter
        found.add(lower.removesuffix(ending).translate(_LEET))
    found.add(lower.translate(_LEET).strip(_EDGES))
    # Passwords are spelled with or without accents, spaces and hyphens.
    found |= {re.sub(r"[\s_.\-]", "", core) for core in found}
    return {core for core in found | {core[::-1] for core in found} if core}


def _is_made_of(core: str, words: set[str] | frozenset[str]) -> bool:
    """Whether it is one of the words, two of them, or one with few letters more."""
    if core in words:
        return True
    return any(
        core[:cut] in words and (core[cut:] in words or len(_without_walks(core[cut:])) < _RUN_MIN)
        for cut in range(_RUN_MIN, len(core))
    )


def _repeats(lower: str) -> bool:
    """`abcabcabc`, `12121212`: at most four characters again and again."""
    return any(
        lower == (lower[:period] * len(lower))[: len(lower)]
        for period in range(1, min(5, len(lower) // 2 + 1))
    )


def _without_walks(text: str) -> str:
    """What is left when every run of neighbouring keys, or of one key, is taken away."""
    left = list(text)
    start = 0
    while start < len(text) - 1:
        end = start + 2
        while end <= len(text) and _is_walk(text[start:end]):
            end += 1
        length = end - 1 - start
        if length >= _RUN_MIN:
            left[start : start + length] = [""] * length
        start += max(1, length if length >= _RUN_MIN else 1)
    return "".join(left)


def _is_walk(piece: str) -> bool:
    if all(a == b for a, b in pairwise(piece)):
        return True
    return any(piece in walk or piece[::-1] in walk for walk in _WALKS)


def _spellings(name: str) -> set[str]:
    lower = name.casefold()
    parts = lower.split()
    joined = {"".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)}
    return {part for part in joined if len(part) >= _RUN_MIN} | {lower, "-".join(parts)} - {""}
