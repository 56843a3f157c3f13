"""Add tables from a pasted or uploaded list."""

import html
import re

import pytest

from appliance.core.encodings import ENCODINGS
from appliance.venue.model import list_tables
from appliance.venue.table_list import parse_tables
from tests.app.portal.seating import value_of
from tests.app.portal.venue_forms import numbers


async def test_a_pasted_list_is_previewed_and_then_appended(running, manager):
    pasted = "V1-V3;Salon 1;4;10;vip;3000\nBAR\t\t1\t2\tbar\n\nP1, Patio 1, 2, 6, terrace, 400"

    status, page, _ = await manager.post("/portal/venue/preview", {"list": pasted})
    assert status == 200
    assert len(await numbers(running.live)) == 6
    status, _, headers = await manager.post(
        "/portal/venue/tables", {"list": value_of(page, "list")}
    )

    assert (status, headers["Location"]) == (303, "/portal/venue?note=tables-added")
    tables = (await running.live.database.read(list_tables))[6:]
    assert [(t.number, t.name, t.capacity_min, t.capacity_max, t.minimum_spend, t.type)
            for t in tables] == [
        ("V1", "Salon 1", 4, 10, 3000, "vip"),
        ("V2", "Salon 2", 4, 10, 3000, "vip"),
        ("V3", "Salon 3", 4, 10, 3000, "vip"),
        ("BAR", "BAR", 1, 2, 0, "bar"),
        ("P1", "Patio 1", 2, 6, 400, "terrace"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "column"),
    [("X1;a;b;4", "capacity_min"), ("X1;a;0;4", "capacity_min"), ("X1;a;2;4000", "capacity_max"),
     ("X1;a;5;4", "capacity_max"), ("X1;a;2;4;bar;12.50", "minimum_spend"),
     ("X1;a;2;4;bar;-1", "minimum_spend"), ("X1;a;2;4;bar;5;6", "line"), (";a", "number"),
     ("X" * 41, "number"), ("X1;" + "a" * 101, "name"), ("X1;a;2;4;" + "b" * 41, "type"),
     ("T1", "number"), ("T9-T1", "number"), ("T1-S9", "number"), ("X1-X501", "line"),
     ("A1", "number"), ("a1", "number"), ("Ａ١", "number"), ("t1", "number")],
)  # fmt: skip
def test_an_unreadable_line_is_named_and_the_others_are_previewed(line, column):
    found = parse_tables(f"A1\n{line}\nA2", frozenset({"T1"}))
    assert [(number, fault.field) for number, _, fault in found.faults] == [(2, column)]
    assert [table.number for table in found.tables] == ["A1", "A2"]


@pytest.mark.parametrize("heading", ["NUMERO", "N°", "Nº", "№", "Numéro", "رقم", "الطاولة"])
@pytest.mark.parametrize("dash", ["-", "–", "‑", "−", " — "])
def test_ranges_headings_and_digits_are_recognised_in_every_spelling(heading, dash):
    found = parse_tables(f"{heading};Nom\nT٩{dash}T١٠;Loge;٢;٤")
    assert found.faults == ()
    assert [(table.number, table.capacity_max) for table in found.tables] == [("T9", 4), ("T10", 4)]


def test_the_header_line_of_a_spreadsheet_is_not_a_table_and_leading_zeros_are_kept():
    found = parse_tables("Numéro;Nom;Min;Max\nA08-A10;Loge 08")
    assert [(table.number, table.name) for table in found.tables] == [
        ("A08", "Loge 08"), ("A09", "Loge 09"), ("A10", "Loge 10"),
    ]  # fmt: skip


async def test_a_list_with_an_error_adds_nothing_and_its_line_is_escaped(running, manager):
    for path in ("preview", "tables"):
        _, page, _ = await manager.post(f"/portal/venue/{path}", {"list": "A1\n<b>x</b>;;9;4"})
        assert "<b>x</b>" not in page
        assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert len(await numbers(running.live)) == 6


async def test_a_table_added_in_the_meantime_is_named_and_the_list_is_kept(
    running, manager, monkeypatch
):
    monkeypatch.setattr("web.portal.venue._numbers", lambda _: frozenset())  # like the preview

    status, page, _ = await manager.post("/portal/venue/tables", {"list": "A1\nT1"})

    assert (status, '<p class="problem">' in page) == (400, True)
    assert "A1\nT1</textarea>" in page


def upload(*parts, end="--"):
    """Return a multipart body with these parts, each (headers, content)."""
    lines = b"".join(
        b"--b\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + text + b"\r\n"
        for head, text in parts
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    return {"data": lines + f"--b{end}\r\n".encode(), "headers": headers}


@pytest.mark.parametrize("kind", ["text/csv", "text/plain; charset=utf-16", "x; charset=punycode"])
async def test_an_uploaded_file_is_read_as_utf_8_whatever_content_type_it_declares(kind, owner):
    head = f'name="file"; filename="tables.csv"\r\nContent-Type: {kind}'.encode()
    sent = upload((b'name="list"', b""), (head, "\ufeffA1;Été;2;4".encode()))
    status, page, _ = await owner.send("POST", "/portal/venue/preview", **sent)
    assert status == 200
    assert "A1" in page
    assert "Été" in page


FRENCH = "Numéro;Nom\nA1;Terrasse d’été\nA2;Cœur\nA3;Salle à manger\nA4;FENÊTRE\nA5;Côté mer"
ARABIC = "رقم;الاسم\nA1;شرفة الصيف\nA2;طاولة النافذة\nA3;الحديقة\nA4;القاعة الكبيرة\nA5;البهو"


@pytest.mark.parametrize(
    ("list_", "encoding"),
    [(text, encoding)
     for text, encodings in (
         (FRENCH, ("utf-8", "utf-8-sig", "utf-16", "cp1252", "mac_roman")),
         (FRENCH.replace("œ", "oe").replace("’", "'"), ("cp850",)),
         ("Table;Nom\nA1;Cœur", ("cp1252", "mac_roman")),
         ("Table;Nom\nA1;CAFÉ", ("cp1252", "mac_roman", "cp850")),
         (ARABIC, ("utf-8", "utf-8-sig", "utf-16", "cp1256", "mac_arabic", "cp720")))
     for encoding in encodings],
)  # fmt: skip
async def test_an_uploaded_file_can_be_in_every_encoding_that_excel_saves(
    running, manager, list_, encoding
):
    for end in ("\r\n", "\r"):
        raw = list_.replace("\n", end).replace(";", "\t" if encoding == "utf-16" else ";")
        head = b'name="file"; filename="tables.csv"'
        sent = upload((b'name="list"', b""), (head, raw.encode(encoding)))
        status, page, _ = await manager.send("POST", "/portal/venue/preview", **sent)
        assert status == 200
        found = re.findall(r"<li><bdi[^>]*>[^<]*</bdi> <bdi[^>]*>([^<]*)<", html.unescape(page))
        assert found == [line.partition(";")[2] for line in list_.split("\n")[1:]]
        assert ENCODINGS.get(encoding, "UTF-8") in page


@pytest.mark.parametrize(
    "sent",
    [b"PK\x03\x04\x14\x00\x06\x00", b"A1;\x00", b"\xff\xfeA", "A1;\ufffd".encode()],
    ids=["workbook", "zero", "half", "replaced"],
)  # fmt: skip
async def test_an_uploaded_file_that_is_not_text_is_refused_at_its_field(manager, sent):
    sent = upload((b'name="list"', b""), (b'name="file"; filename="a.csv"', sent))
    status, page, _ = await manager.send("POST", "/portal/venue/preview", **sent)
    assert (status, 'id="refused-file"' in page) == (400, True)


def test_all_errors_of_a_line_are_reported():
    [(line, _, fault)] = parse_tables("X1;a;0;4000;bar;12,5").faults
    assert line == 1
    assert {fault.field, *(other.field for other in fault.others)} == {
        "capacity_min", "capacity_max", "minimum_spend",
    }  # fmt: skip
