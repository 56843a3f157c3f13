"""The people of the house: what they may do, and which passwords they may choose."""

from dataclasses import dataclass

ROLES = ("owner", "manager", "host", "door")
PASSWORD_MIN = 8
PASSWORD_MAX = 256
_DIFFERENT_MIN = 3

# What is tried first: the most frequent ones of eight characters and more, French ones too.
_FREQUENT = frozenset(
    """
    password passwort motdepasse motdepasse1 password1 password12 password123 passw0rd p@ssw0rd
    12345678 123456789 1234567890 0123456789 87654321 987654321 0987654321 11111111 00000000
    88888888 12341234 11223344 12344321 123123123 qwertyui qwertyuiop qwerty123 qwertz123
    azertyui azertyuiop azerty123 azerty12 1q2w3e4r 1q2w3e4r5t 1qaz2wsx q1w2e3r4 zaq12wsx
    asdfghjk asdfghjkl qsdfghjk qsdfghjklm abcdefgh abcd1234 abc12345 aa123456 a1234567
    iloveyou iloveyou1 jetaime1 jetaime2 sunshine princess princesse football baseball basketball
    superman spiderman pokemon1 trustno1 whatever starwars michelle jennifer computer internet
    letmein1 welcome1 bienvenue bienvenue1 bonjour1 bonjour123 admin123 admin1234 administrator
    administrateur changeme chocolat chocolate soleil123 marseille casablanca casablanca1
    marrakech marrakech1 maroc123 morocco1 doudou123 loulou123 nicolas1 liverpool chelsea1
    restaurant reservation
    """.split()  # noqa: SIM905 - words are easier to read and to add to than quotes
)
_PRODUCT = "venuebox"


@dataclass(frozen=True, slots=True)
class StaffMember:
    """A person who may sign in. `has_password` is false until the invitation was used."""

    id: str
    name: str
    role: str
    has_password: bool
    created_at: int
    disabled_at: int | None
    language: str = "fr"

    def may(self, role: str) -> bool:
        """Whether this person's role includes `role`: an owner may what a manager may, and so on.

        The order is that of ROLES.
        """
        return ROLES.index(self.role) <= ROLES.index(role)


def is_guessable(password: str, names: tuple[str, ...]) -> bool:
    """Whether `password` is among the first that anyone would try.

    `names` are the person's and the venue's: alone, doubled or with digits they are no secret.
    """
    lower = password.casefold()
    core = lower.strip("0123456789 !?.@#*-_")
    words = {_PRODUCT, *(part for name in names for part in _spellings(name))}
    return (
        lower in _FREQUENT
        or len(set(lower)) < _DIFFERENT_MIN
        or core in words
        or any(core == word * 2 for word in words)
    )


def _spellings(name: str) -> set[str]:
    lower = name.casefold()
    joined = "".join(lower.split())
    return {part for part in (lower, joined, "-".join(lower.split()), *lower.split()) if part}
