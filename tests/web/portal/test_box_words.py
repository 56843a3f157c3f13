"""What the portal says of the box is in a manager's words, with times in venue time."""

import re
from zoneinfo import ZoneInfo

import pytest

from appliance.doctor.backups import backups
from appliance.doctor.check import warn
from appliance.doctor.words import Instant
from tests.web.portal.people import a_person
from web.languages import load_languages
from web.portal.box.pages import _say

ZONE = ZoneInfo("Asia/Dubai")
AT = 1_795_206_300_000  # 2026-11-20 20:25 UTC
TECHNICAL = re.compile(r"venuebox \w+|settings\.toml|UTC|\b(?:server|mail|backup)\.[a-z*]")


def the_check():
    return warn(
        "backups",
        "La dernière sauvegarde vérifiée date du {when} UTC.",
        "The last proven backup is of {when} UTC{because}.",
        "Laissez la box allumée la nuit, ou lancez venuebox backup.",
        "Leave the box on at night, or run venuebox backup.",
        when=Instant(AT, "2026-11-20 20:25"),
        because=" (no room)",
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("fr", "La dernière sauvegarde vérifiée date du sam. 21 nov. 00:25."),
        ("en", "The last proven backup is of Sat 21 Nov 00:25."),
        ("ar", "آخر نسخة احتياطية مختبرة تعود إلى "),
    ],
)
def test_an_instant_is_said_in_venue_time(code, said):
    check, language = the_check(), load_languages().get(code)

    finding = _say(check.finding, language, ZONE)
    assert finding.startswith(said)
    assert "00:25" in finding
    assert not TECHNICAL.search(finding + _say(check.remedy, language, ZONE))


def test_on_the_command_line_it_keeps_its_command_and_utc():
    check = the_check()

    assert check.finding.en == "The last proven backup is of 2026-11-20 20:25 UTC (no room)."
    assert "venuebox backup" in check.remedy.en
    assert backups.__name__ == check.name


def test_what_fills_a_sentence_keeps_its_apostrophes_in_french():
    check = warn(
        "readers",
        "Aucun terminal ne s'appelle {named} ({environment}).",
        "There is no terminal called {named} ({environment}).",
        "Créez-le avec venuebox terminal create, ou corrigez settings.toml.",
        "Create it with venuebox terminal create, or correct settings.toml.",
        named="L'Entrée",
        environment="live",
    )

    said = _say(check.finding, load_languages().get("fr"), ZONE)
    assert "s’appelle L'Entrée" in said


@pytest.mark.parametrize("language", ["fr", "en", "ar"])
async def test_the_list_of_checks_names_no_command_and_no_setting(running, language):
    manager = await a_person(running, "manager")
    page = (await manager.get(f"/portal/box?again=1&lang={language}"))[1]

    checks = "".join(re.findall(r'<ul class="checks">.*?</ul>', page, re.DOTALL))
    assert checks.count("<li") > 5
    assert TECHNICAL.findall(re.sub(r"<[^>]+>", "", checks)) == []
    assert re.search(r'<p class="hint">[^<&]*\bvenuebox doctor\b[^<&]*</p>', page)
