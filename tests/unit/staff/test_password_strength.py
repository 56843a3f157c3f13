import pytest

from appliance.staff.password_strength import is_guessable

NAMES = ("Yasmine El Fassi", "Riad Atlas")

# From what is published as most used in France, Morocco and the world, 8 characters and more.
FREQUENT = """
12345678 123456789 1234567890 0123456789 87654321 987654321 11111111 00000000 12341234 11223344
12344321 123123123 qwertyui qwertyuiop qwerty123 qwertz123 azertyui azertyuiop azerty123 azerty12
1q2w3e4r 1q2w3e4r5t 1qaz2wsx q1w2e3r4 zaq12wsx asdfghjk asdfghjkl qsdfghjk qsdfghjklm abcdefgh
abcd1234 abc12345 aa123456 a1234567 iloveyou iloveyou1 jetaime1 jetaime2 sunshine princess
princesse football baseball basketball superman spiderman pokemon1 trustno1 whatever starwars
michelle jennifer computer internet letmein1 welcome1 bienvenue bienvenue1 bonjour1 bonjour123
admin123 admin1234 administrator administrateur changeme chocolat chocolate soleil123 marseille
casablanca casablanca1 marrakech marrakech1 maroc123 morocco1 doudou123 loulou123 nicolas1
liverpool chelsea1 restaurant reservation password password1 password12 password123 passw0rd
p@ssw0rd motdepasse motdepasse1 P@ssw0rd! Passw0rd2026 Azerty2026! Motdepasse123 Casablanca2026
marrakech40000 Tanger90 agadir1986 rabat1234 fes12345 maroc2026! passwordpassword azertyazerty
soleilsoleil 20262026 21112026 147258369 159357159357 aqwzsxed azeqsdwxc poiuytreza
1a2z3e4r5t qazwsxedc zxcvbnm123 aaaa1111 abababab xyzxyzxyz drowssap 7654321q mohamed1990
fatima2003 Janvier2026 decembre25 riad2026 RiadAtlas2026 riadatlas1 yasmine123 Yasmine2026
elfassi2026 atlasatlas venuebox venuebox1 venuebox2026 VenueBox2026! Password aaaaaaaa yasmine1
riadatlas Riad-Atlas1
""".split()  # noqa: SIM905 - words are easier to read and to add to than quotes

KEPT = """
correcthorsebatterystaple le-thé-est-servi-à-minuit tRz8#kq2Lw vaisselle-bleue-jeudi
6duchessesSurLeToit jkw8-2hdn-xx91 Zellige.cuivre.menthe
""".split()  # noqa: SIM905 - words are easier to read and to add to than quotes


@pytest.mark.parametrize("password", FREQUENT)
def test_what_anyone_would_try_first_is_refused(password):
    assert is_guessable(password, NAMES)


@pytest.mark.parametrize(
    "password",
    [*KEPT, "le thé est servi à minuit", "جملة طويلة يسهل تذكرها", "terrasse aux citrons"],
)
def test_what_takes_a_while_to_guess_is_taken(password):
    assert not is_guessable(password, NAMES)


@pytest.mark.parametrize("city", ["casablanca", "meknes", "essaouira", "chefchaouen"])
@pytest.mark.parametrize("dressing", ["{}2026", "{}123!", "{}{}", "!!{}12", "12345{}", "{}1990!"])
def test_a_city_of_the_country_with_digits_is_no_secret(city, dressing):
    assert is_guessable(dressing.replace("{}", city).capitalize(), ())


def test_the_venues_name_in_two_words_is_guessable():
    assert is_guessable("riad atlas", NAMES)


@pytest.mark.parametrize("row", ["azertyuiop", "qsdfghjklm", "qwertyuiop", "asdfghjkl", "1qaz2wsx"])
def test_keys_that_lie_in_a_row_are_no_secret_in_either_direction(row):
    assert is_guessable(row, ())
    assert is_guessable(row[::-1], ())
    assert is_guessable(row + "12", ())


def test_a_long_password_is_judged_in_no_time():
    assert not is_guessable("un deux trois soleil et puis encore " * 7, NAMES)
