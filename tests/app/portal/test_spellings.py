"""Names and passwords are the same in every Unicode spelling of their letters."""

import unicodedata

import pytest

from appliance.core.errors import NameTaken
from appliance.staff.accounts import create_staff
from appliance.staff.model import set_password
from tests.app.portal.people import a_person, an_account, hash_cheaply
from tests.app.portal.test_sign_in import sign_in
from web.portal.guard import Passwords, is_guessable

NAME = "Hélène M'Rabet-Tazi"
SPELLINGS = [
    unicodedata.normalize("NFD", NAME), "HÉLÈNE M’RABET–TAZI", "\u200fHélène M'Rabet-Tazi\u200e",
    "\ufeffHélène\u00a0M\u02bcRabet\u2011Tazi ", "\u2067Hélène\u2069 M'Rabet-Tazi",
    "Ｈélène M'Rabet-Tazi",
]  # fmt: skip


@pytest.mark.parametrize("typed", SPELLINGS)
async def test_equivalent_spellings_of_a_name_are_one_account(running, typed):
    await an_account(running, NAME)
    owner = await a_person(running)

    assert (await sign_in(running, typed))[0] == 303
    assert (await owner.post("/portal/people", {"name": typed, "role": "host"}))[0] == 409
    with pytest.raises(NameTaken):
        await running.live.database.write(create_staff, typed, "host")


async def test_a_name_is_stored_in_composed_form_without_direction_marks(running):
    await an_account(running, SPELLINGS[0])
    await an_account(running, "\u200fسلمى\u200e")

    names = await running.live.database.read(lambda r: list(r.rows("SELECT name FROM staff")))
    assert names == [(NAME,), ("سلمى",)]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_a_password_is_accepted_in_any_unicode_normalisation(form):
    passwords, secret = Passwords(), "le thé ﬁn à minuit"
    stored = await passwords.hash(unicodedata.normalize(form, secret))

    for typed in ("NFC", "NFD", "NFKC"):
        assert await passwords.matches(stored, unicodedata.normalize(typed, secret))
    assert not await passwords.matches(stored, "le the fin a minuit")
    assert not await passwords.matches(None, secret)


async def test_a_hash_of_the_unnormalised_password_is_still_accepted(running):
    decomposed = unicodedata.normalize("NFD", "le thé est servi")
    staff_id = await an_account(running)
    await running.live.database.write(set_password, staff_id, hash_cheaply(decomposed))

    assert (await sign_in(running, password=decomposed))[0] == 303


KNOWN = ("Yasmine El Fassi", "Riad Étoile", "12, derb Dabachi, Ouarzazate")


@pytest.mark.parametrize(
    "password",
    ["12345678", "qwertyuiop", "azertyuiop1", "P@ssw0rd2026", "motdepasse1", "bienvenue2026",
     "Casablanca2026", "maroc2026!", "yasmine123", "elfassi2026", "RiadEtoile1", "riad-étoile1",
     "riad etoile", "Ouarzazate2026", "venuebox2026", "aaaaaaaa", "abcabcabc", "21112026"],
)  # fmt: skip
def test_an_obvious_password_is_refused(password):
    assert is_guessable(password, KNOWN)


@pytest.mark.parametrize(
    "password",
    ["tRz8#kq2Lw", "vaisselle-bleue-jeudi", "le thé est servi à minuit", "جملة طويلة يسهل تذكرها",
     "un deux trois soleil et puis encore " * 7],
)  # fmt: skip
def test_a_password_that_is_hard_to_guess_is_accepted(password):
    assert not is_guessable(password, KNOWN)
