"""Parse an email as its receiver does, and check it against injected headers and elements."""

import dataclasses
import email
import email.policy
from html.parser import HTMLParser

from tests.unit.email.conftest import SENDER

HOSTILE = [
    "Riad\r\nBcc: victim@evil.example",
    "Riad\nSubject: won\n\n<script>alert(1)</script>",
    'Évil" <boss@bank.example>, "x',
    "É" * 90 + ", boss@bank.example, " + "é" * 90,
    "=?utf-8?q?=0D=0ABcc=3A_victim=40evil.example?=",
    "=?utf-8?b?DQpCY2M6?= é, < ?= =",
    "\u2028Bcc: x@evil.example\u202e",
    "<b>Riad</b> & {venue} {0} {{ 7*7 }} %s",
    "Riad\x00\x1b[31m",
]


def received(message):
    """Return the message as a receiver parses it."""
    return email.message_from_bytes(message.as_bytes(), policy=email.policy.default)


def parts(message):
    plain = message.get_body(("plain",)).get_content().replace("\r\n", "\n")
    html = message.get_body(("html",)).get_content()
    pictures = [p for p in message.walk() if p.get_content_maintype() == "image"]
    return plain, html, pictures


def with_changes(contents, **changes):
    """Return the contents with fields of email, reservation or venue replaced: `venue__name=…`."""
    for path, value in changes.items():
        part, _, field = path.partition("__")
        inner = dataclasses.replace(getattr(contents, part), **{field: value})
        contents = dataclasses.replace(contents, **{part: inner})
    return contents


def check_one_letter(message, benign):
    """Check that `message` has exactly the headers, addresses and elements of `benign`."""
    letter, usual = received(message), received(benign)
    assert letter.keys() == usual.keys()
    assert [a.addr_spec for a in letter["From"].addresses] == [SENDER]
    assert [a.addr_spec for a in letter["To"].addresses] == ["yasmine@guest.example"]
    assert not letter.defects
    head = message.as_bytes().split(b"\r\n\r\n")[0]
    names = [line.split(b":")[0] for line in head.split(b"\r\n") if line[:1] not in b" \t"]
    usual_head = benign.as_bytes().split(b"\r\n\r\n")[0]
    assert names == [
        line.split(b":")[0] for line in usual_head.split(b"\r\n") if line[:1] not in b" \t"
    ]
    assert elements(parts(letter)[1]) == elements(parts(usual)[1])
    assert parts(letter)[0].count("\n") == parts(usual)[0].count("\n")


def elements(html):
    found = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, [name for name, _ in attributes]))

    Collector().feed(html)
    return found
