import asyncio
import json
import re

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message

from appliance.backup.shelf import Record, write_record
from appliance.log_files import FILE
from appliance.store.conditions import Condition, put_condition
from tests.conftest import running_box, with_settings
from tests.web.portal.people import a_person
from web.portal.context import RESTART


class Mailbox(Message):
    def __init__(self):
        super().__init__()
        self.letters = []

    def handle_message(self, message):
        self.letters.append(message)


async def test_the_page_has_a_lamp_and_a_remedy_for_what_is_not_well(running):
    manager = await a_person(running, "manager")

    status, text, _ = await manager.get("/portal/box")

    assert status == 200
    assert 'class="lamp fail"' in text or 'class="lamp warn"' in text
    assert "backup" in text.lower()
    assert "2026" in text


async def test_what_the_box_reports_is_shown_as_text(running):
    manager = await a_person(running, "manager")
    condition = Condition("box_offline", "", running.clock.now(), "no way out <b>")
    await running.live.database.write(put_condition, condition)

    _, text, _ = await manager.get("/portal/box")

    assert "no way out &lt;b&gt;" in text


async def test_who_reads_arabic_is_told_in_arabic_with_what_is_latin_apart(running):
    manager = await a_person(running, "manager")
    for name in ("mail_settings", "reader_trouble"):
        condition = Condition(name, "", running.clock.now(), "The reader </bdi><b> is off.")
        await running.live.database.write(put_condition, condition)

    _, text, _ = await manager.get("/portal/box?lang=ar")

    assert "<div><b>" in text
    assert "لا تخرج أي رسالة قبل تصحيح إعدادات البريد</bdi>" in text
    assert 'فيه خلل: <bdi class="code">The reader &lt;/bdi&gt;&lt;b&gt; is off</bdi></bdi>' in text
    findings = text[text.index('class="checks"') : text.index('id="conditions"')]
    assert re.search("[éèêà]", findings) is None
    assert re.search("[\u2066-\u2069]", text) is None


async def test_the_log_is_shown_by_its_end_in_words(running, tmp_path):
    manager = await a_person(running, "manager")
    lines = [
        {
            "at": "2026-11-21T19:00:00.123Z",
            "level": "warning",
            "from": "web",
            "message": f"n{n} <i>",
        }
        for n in range(500)
    ]
    (tmp_path / "log").mkdir(exist_ok=True)
    (tmp_path / "log" / FILE).write_text("\n".join([*map(json.dumps, lines), "{cut"]))

    _, text, _ = await manager.get("/portal/box")

    assert "2026-11-21 19:00:00 warning web: n499 &lt;i&gt;\n{cut</pre>" in text
    assert "n400 " not in text


async def test_the_last_proven_backup_is_told_and_why_none_came_after_it(running, tmp_path):
    manager = await a_person(running, "manager")
    assert "None was made yet" in (await manager.get("/portal/box"))[1]
    record = Record(running.clock.now(), "x", 35_489, 7, running.clock.now(), "no space <b>")
    write_record(tmp_path, record)

    _, text, _ = await manager.get("/portal/box")

    assert "7 reservations" in text
    assert "36 kB" in text
    assert "no space &lt;b&gt;" in text


async def test_a_test_letter_reaches_the_mailbox(tmp_path, clock, unused_tcp_port):
    mailbox = Mailbox()
    server = Controller(mailbox, hostname="127.0.0.1", port=unused_tcp_port)
    server.start()
    try:
        mail = {"host": "127.0.0.1", "port": unused_tcp_port, "security": "none",
                "sender": "box@example.com"}  # fmt: skip
        async with running_box(tmp_path, clock, with_settings(mail=mail)) as running:
            manager = await a_person(running, "manager")
            form = {"recipient": "yasmine@example.com"}
            status, text, _ = await manager.post("/portal/box/test-letter", form)
    finally:
        await asyncio.to_thread(server.stop)

    assert (status, "The mail server took the letter" in text) == (200, True)
    [letter] = mailbox.letters
    assert letter["To"] == "yasmine@example.com"


async def test_without_a_mail_server_a_test_letter_says_so(running):
    manager = await a_person(running, "manager")

    _, text, _ = await manager.post("/portal/box/test-letter", {"recipient": "a@example.com"})

    assert "does not accept these settings" in text


async def test_only_an_owner_restarts_the_box_and_only_where_it_can(running):
    asked = []
    assert RESTART not in running.app
    owner, manager = await a_person(running), await a_person(running, "manager")
    assert (await owner.post("/portal/box/restart"))[0] == 200
    running.app._state[RESTART] = lambda: asked.append(True)

    assert (await manager.post("/portal/box/restart"))[0] == 403
    assert asked == []
    status, text, _ = await owner.post("/portal/box/restart")

    assert (status, "The box restarts" in text, asked) == (200, True, [True])
