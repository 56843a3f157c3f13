import io
import re

import pytest
import zxingcpp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from appliance.errors import NotFound
from appliance.mail.composing import Composer, UnusableAddress
from appliance.mail.contents import read_contents
from appliance.mail.outbox import render_letter
from tests.appliance.mail.conftest import SENDER
from tests.appliance.mail.reading import HOSTILE, check_one_letter, parts, received, with_changes


@pytest.fixture
async def contents(environment, a_letter):
    letter_id = await a_letter(access_code="SVC-7K2M", starts=1170, ends=1320)
    return await environment.database.read(read_contents, environment, letter_id)


async def test_the_letter_tells_code_link_evening_table_and_party_in_both_parts(
    contents, environment
):
    letter = received(Composer(SENDER).compose(contents))

    plain, html, _ = parts(letter)
    url = environment.links.access(environment.keyring.access_token(contents.reservation.id))
    for text in (plain, html):
        for told in (
            "SVC-7K2M",
            url,
            "Samedi 21 novembre 2026, de 19:30 à 22:00",
            "Terrasse 1",
            "4 personnes",
            "Bonjour Yasmine,",
            "Riad Atlas",
        ):
            assert told in text
    assert [p.get_content_type() for p in letter.walk()] == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "image/png",
        "text/calendar",
    ]


async def test_the_pass_in_the_letter_is_read_by_a_scanner(contents):
    letter = received(Composer(SENDER).compose(contents))

    _, html, pictures = parts(letter)
    picture, attached = pictures
    image = Image.open(io.BytesIO(picture.get_content())).convert("L")
    (code,) = zxingcpp.read_barcodes(image)
    assert code.text == contents.pass_text
    assert len(code.text) == 139
    half = zxingcpp.read_barcodes(image.resize((image.width // 2, image.height // 2)))
    assert [found.text for found in half] == [contents.pass_text]
    assert f"cid:{picture['Content-ID'].strip('<>')}" in html
    assert picture.get_content_disposition() == "inline"
    assert attached.get_content_disposition() == "attachment"
    assert attached.get_filename() == "pass.png"
    assert attached.get_content() == picture.get_content()


async def test_the_headers_say_who_to_whom_when_and_that_a_machine_wrote(contents):
    letter = received(Composer(SENDER).compose(contents))

    (sender,) = letter["From"].addresses
    assert (sender.display_name, sender.addr_spec) == ("Riad Atlas", SENDER)
    assert letter["To"] == "yasmine@guest.example"
    assert letter["Subject"] == "Votre réservation : Riad Atlas, samedi 21 novembre"
    assert letter["Date"].datetime.isoformat() == "2026-11-20T12:00:00+00:00"
    assert letter["Message-ID"] == f"<{contents.letter.id}@riad.example>"
    assert letter["Auto-Submitted"] == "auto-generated"
    assert letter["Content-Language"] == "fr"
    assert letter["MIME-Version"] == "1.0"
    raw = Composer(SENDER).compose(contents).as_bytes()
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")


SUBJECTS = {
    "fr": "Votre réservation : Riad Atlas, samedi 21 novembre",
    "en": "Your reservation: Riad Atlas, Saturday 21 November",
    "ar": "حجزكم: Riad Atlas، السبت 21 نونبر",
}


@pytest.mark.parametrize(
    ("language", "direction", "told"),
    [
        ("fr", "ltr", ["Votre réservation est confirmée", "4 personnes"]),
        ("en", "ltr", ["Saturday 21 November 2026, 19:30 to 22:00", "4 guests"]),
        ("ar", "rtl", ["السبت 21 نونبر 2026، من 19:30 إلى 22:00", "4 أشخاص", "مرحبا Yasmine،"]),
    ],
)
async def test_each_language_reads_in_its_own_direction(contents, language, direction, told):
    letter = received(Composer(SENDER).compose(with_changes(contents, letter__language=language)))

    plain, html, _ = parts(letter)
    assert f'<html lang="{language}" dir="{direction}">' in html
    assert letter["Content-Language"] == language
    assert letter["Subject"] == SUBJECTS[language]
    for text in told:
        assert text in plain
        assert text in html


@pytest.mark.parametrize("language", ["fr", "en", "ar"])
async def test_the_letter_says_where_to_go_and_a_map_is_one_tap_away(contents, language):
    street = "12 derb <El Ferrane>, Marrakech"
    changed = with_changes(contents, venue__address=street, letter__language=language)

    plain, html, _ = parts(received(Composer(SENDER).compose(changed)))

    assert street in plain
    assert "12 derb &lt;El Ferrane&gt;, Marrakech</a>" in html
    assert 'href="https://www.openstreetmap.org/search?query=12%20derb%20%3CEl' in html


async def test_who_is_not_expected_is_not_told_the_way(contents):
    changed = with_changes(
        contents, venue__address="12 derb", letter__kind="declined", reservation__status="declined"
    )

    plain, html, _ = parts(received(Composer(SENDER).compose(changed)))

    assert "12 derb" not in plain + html


@pytest.mark.parametrize(
    ("language", "guests", "told"),
    [("fr", 1, "1 personne"), ("en", 1, "1 guest"), ("ar", 2, "شخصان"), ("ar", 12, "12 شخصا")],
)
async def test_the_party_is_counted_as_the_language_counts(contents, language, guests, told):
    changed = with_changes(contents, letter__language=language, reservation__guests=guests)
    plain, _, _ = parts(received(Composer(SENDER).compose(changed)))
    assert re.search(rf"{told}$", plain, re.MULTILINE)


async def test_no_slot_is_the_whole_evening_and_a_late_slot_ends_next_morning(contents):
    whole = with_changes(contents, reservation__slot=None, reservation__ends=2880)
    late = with_changes(
        contents, reservation__slot="23:00", reservation__starts=1380, reservation__ends=1560
    )

    assert (
        "Samedi 21 novembre 2026, toute la soirée"
        in parts(received(Composer(SENDER).compose(whole)))[0]
    )
    assert "de 23:00 à 02:00" in parts(received(Composer(SENDER).compose(late)))[0]


@pytest.mark.proves("S21")
@pytest.mark.parametrize("text", HOSTILE)
async def test_a_hostile_name_adds_no_header_no_address_and_no_markup(contents, text):
    changed = with_changes(contents, venue__name=text, reservation__customer_name=text,
                           reservation__table_name=text)  # fmt: skip
    check_one_letter(Composer(SENDER).compose(changed), Composer(SENDER).compose(contents))


TYPED = st.lists(
    st.text(max_size=40) | st.sampled_from([*HOSTILE, "=?utf-8?b?DQpCY2M6?=", "?=", "=", "é, <"]),
    min_size=1, max_size=6,
).map("".join)  # fmt: skip


@pytest.mark.proves("V1")
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(name=TYPED, guest=TYPED)
def test_no_name_whatever_breaks_out_of_its_place(sample, name, guest):
    contents, composer = sample
    changed = with_changes(contents, venue__name=name, reservation__customer_name=guest)
    check_one_letter(composer.compose(changed), composer.compose(contents))


@pytest.fixture
async def sample(contents, monkeypatch):
    monkeypatch.setattr("appliance.mail.composing.qr_png", lambda *_: b"\x89PNG")
    return contents, Composer(SENDER)


async def test_nothing_in_the_letter_is_fetched_from_anywhere(contents):
    _, html, _ = parts(received(Composer(SENDER).compose(contents)))

    assert re.findall(r'src="([^"]*)"', html) == [f"cid:pass.{contents.letter.id}@venuebox.invalid"]
    assert set(re.findall(r'href="([^"]*)"', html)) == {contents.access_url, contents.undo_url}
    assert "url(" not in html
    assert "@import" not in html


async def test_with_pictures_off_the_letter_still_says_what_to_do(contents):
    _, html, _ = parts(received(Composer(SENDER).compose(contents)))

    assert 'alt="QR code d’entrée. S’il ne s’affiche pas, dites le code SVC-7K2M' in html


async def test_an_international_address_is_written_raw_and_its_domain_in_ascii(contents):
    changed = with_changes(contents, letter__recipient="zoë@bücher.example")
    message = Composer(SENDER).compose(changed)

    assert message["To"].addresses[0].addr_spec == "zoë@xn--bcher-kva.example"
    assert "zoë@xn--bcher-kva.example".encode() in message.as_bytes()


async def test_an_international_domain_alone_needs_no_utf8(contents):
    changed = with_changes(contents, letter__recipient="zoe@bücher.example")
    assert Composer(SENDER).compose(changed).as_bytes().isascii()


@pytest.mark.parametrize(
    "address",
    ["x", "@x.example", "x@", "a b@x.example", "a@b@c", "a\r\nBcc: x@y.example", "a,b@c.example",
     "a@" + "b" * 64 + ".example", "<a@b.example>", 'a"b@c.example'],
)  # fmt: skip
async def test_no_letter_is_addressed_to_what_is_no_address(contents, address):
    with pytest.raises(UnusableAddress):
        Composer(SENDER).compose(with_changes(contents, letter__recipient=address))
    assert not Composer(address).has_sender


async def test_the_outbox_shows_a_letter_even_while_no_sender_is_set(at_port, a_letter):
    environment = at_port(25, sender="")
    letter = await render_letter(environment, await a_letter())

    assert letter["From"].addresses[0].addr_spec == "letters@venuebox.invalid"
    with pytest.raises(NotFound):
        await render_letter(environment, "018f0000-0000-7000-8000-00000000ffff")
