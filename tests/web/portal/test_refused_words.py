"""What a field must be is said in the language of the page, and of values nothing is set anew."""

import ast
import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from appliance.actions.edit_slots import add_slot
from appliance.errors import InvalidWebhookUrl, Refusal, ValidationError
from appliance.house_errors import NameTaken, StaffRoleMissing
from appliance.model.booking import field_invalid
from appliance.model.endpoint import parse_pin
from appliance.model.venue_file import SlotEntry
from web.languages import load_languages
from web.portal.answer import refusal_text, rule_text
from web.portal.forms import Form, field_error

ROOT = Path(__file__).parents[3]
LANGUAGES = load_languages()
FRENCH, ENGLISH, ARABIC = (LANGUAGES.get(code) for code in ("fr", "en", "ar"))
BEFORE = {"field_error": "please give ", "field_invalid": ""}
LATIN_WORD = re.compile(r"[a-z]{3,}")


def rules_in_the_code() -> set[str]:
    """The English of every rule that a form of the portal can run into."""
    files = [*(ROOT / "web/portal").rglob("*.py"), *(ROOT / "appliance/actions").glob("*.py"),
             *(ROOT / "appliance/model").glob("*.py")]  # fmt: skip
    found = set()
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in BEFORE and len(node.args) > 2:
            assert isinstance(node.args[2], ast.Constant), ast.unparse(node)
            found.add(BEFORE[node.func.id] + node.args[2].value)
        if node.func.id == "ValidationError":
            found |= {
                re.sub(r"^\w+: ", "", k.value.value)
                for k in node.keywords
                if k.arg == "rule" and isinstance(k.value, ast.Constant)
            }
    return found


def refused(act) -> Refusal:
    with pytest.raises(Refusal) as raised:
        act()
    return raised.value


def test_every_rule_is_said_in_arabic_with_the_same_blanks():
    with (ROOT / "web/catalogues/rules.ar.po").open("rb") as file:
        said = {m.id: m.string for m in read_po(file, locale="ar") if m.id}

    assert rules_in_the_code() - said.keys() == set()
    for english, arabic in said.items():
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", arabic))


@pytest.mark.parametrize(
    ("language", "beside", "apart"),
    [
        (FRENCH, "Il faut un nombre entier de 1 à 9.",
         "Personnes au minimum\N{NO-BREAK SPACE}: il faut un nombre entier de 1 à 9."),
        (ENGLISH, "Please give a whole number from 1 to 9.",
         "Fewest guests: please give a whole number from 1 to 9."),
        (ARABIC, "المطلوب عدد صحيح من 1 إلى 9.", None),
    ],
)  # fmt: skip
def test_a_number_that_is_none_is_refused_in_words_of_the_page(language, beside, apart):
    refusal = refused(lambda: Form({"capacity_min": "x"}).whole("capacity_min", 1, 9))

    assert rule_text(refusal, language) == beside
    said = refusal_text(refusal, language)
    assert said == apart or apart is None
    assert not LATIN_WORD.search(said) or language is not ARABIC


@pytest.mark.parametrize(
    "refusal",
    [
        InvalidWebhookUrl(
            field="url",
            rule_fr="cette adresse est réservée : aucun réglage ne l'ouvre.",
            rule="this address is reserved: no setting opens it.",
        ),
        refused(lambda: parse_pin("none")),
        field_invalid("number", "une autre table porte le numéro {number}.",
                      "another table has the number {number}.", number="7"),
        StaffRoleMissing(role="owner"),
    ],
)  # fmt: skip
def test_no_sentence_in_arabic_ends_in_english(refusal):
    said = refusal_text(refusal, ARABIC)

    assert LATIN_WORD.findall(said) in ([], ["https"]), said


async def test_a_slots_own_name_stays_as_it_was_typed_in_a_sentence_of_french(running):
    name = "L'After : d'abord"
    slot = SlotEntry(name=name, start="19:30", end="21:00", days_of_week=(0,))
    other = SlotEntry(name="Encore", start="19:30", end="20:00", days_of_week=(0,))
    for day in await running.live.database.read(lambda r: r.rows("SELECT id FROM slot")):
        await running.live.database.write(
            lambda tx, id_=day[0]: tx.execute("DELETE FROM slot WHERE id = :id", {"id": id_})
        )
    await running.live.database.write(add_slot, slot)

    with pytest.raises(ValidationError) as raised:
        await running.live.database.write(add_slot, other)

    said = rule_text(raised.value, FRENCH)
    assert f"«\N{NO-BREAK SPACE}{name}\N{NO-BREAK SPACE}»" in said
    assert said.endswith("l’un de ces jours.")


def test_a_persons_own_name_stays_as_it_was_typed():
    said = refusal_text(NameTaken(name="Moha d'Ourika"), FRENCH)

    assert "Quelqu’un" in said
    assert "Moha d'Ourika" in said


def test_what_looks_like_a_blank_in_a_value_is_not_filled():
    refusal = field_invalid("number", "le numéro {number}.", "the number {number}.", number="{x}")

    assert rule_text(refusal, FRENCH) == "Le numéro {x}."
    assert refusal.error == "Champ invalide : number : le numéro {x}."


def test_a_field_that_no_person_sees_is_not_named():
    refusal = field_error("step", "une étape.", "a step.")

    assert refusal_text(refusal, FRENCH) == "Il faut une étape."
