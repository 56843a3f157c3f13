"""Email addresses in any script: which are valid, which are equal, and links to them."""

from urllib.parse import unquote, urlsplit

import pytest

from appliance.core.email_addresses import clean_email, email_key, is_email, mailto, split_address


@pytest.mark.parametrize(
    "text",
    ["a@b.co", "o'hara+tag@mail.example.co", "x" * 64 + "@example.com", "a.b@c-d.example",
     "a@café.ma", "a@موقع.المغرب", "hélène@example.com", "سلمى@موقع.المغرب", "a@straße.de",
     "a@xn--caf-dma.ma"],
)  # fmt: skip
def test_an_email_address_in_any_script_is_accepted(text):
    assert is_email(text)


@pytest.mark.parametrize(
    "text",
    ["", "a", "a@b", "@b.co", "a@", "a b@c.de", "a@b..co", ".a@b.co", "a.@b.co", "a@-b.co",
     "a@b.co\n", "a@b.co\r\nBcc: d@e.fr", "a@b.co,d@e.fr", "<a@b.co>", "x" * 65 + "@example.com",
     "é" * 33 + "@example.com", "a@" + "b" * 64 + ".co", "a@" + "b." * 130 + "co", "a\x00@b.co",
     "a\u00a0b@c.co", "a\u2028@c.co", "a@ca fé.ma", "a@é..ma", "\ud800@b.co",
     "a@" + "é" * 60 + ".ma", None, 5],
)  # fmt: skip
def test_an_address_that_cannot_receive_mail_is_rejected(text):
    assert not is_email(text)


@pytest.mark.parametrize(
    "typed",
    [" a@b.co ", "a@b.co\n", "\ufeffa@b.co", "\u200ea@b.co\u200f", "a@b.co\u00a0", "a@b\u200b.co"],
)
def test_spaces_around_an_address_and_invisible_characters_are_removed(typed):
    assert clean_email(typed) == "a@b.co"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("Salma@Example.com", "salma@example.COM ", True), ("a@café.ma", "A@XN--CAF-DMA.ma", True),
     ("he\u0301le\u0300ne@b.co", "HÉLÈNE@b.co", True), ("a@b.co", "a+x@b.co", False),
     ("helene@b.co", "hélène@b.co", False)],
)  # fmt: skip
def test_addresses_are_compared_regardless_of_case_and_domain_encoding(one, other, same):
    assert (email_key(one) == email_key(other)) is same


@pytest.mark.parametrize(
    "address",
    ["a?bcc=x%40evil.example&subject=hi@example.com", "o'hara+tag@example.com",
     "hélène@example.com", "a#b/c=d@example.com", "{a|b}^`~!$*@example.com"],
)  # fmt: skip
def test_a_mailto_link_contains_only_the_address_and_no_headers(address):
    link = urlsplit(mailto(address))

    assert (link.scheme, link.query, link.fragment) == ("mailto", "", "")
    assert unquote(link.path) == address
    assert link.path.isascii()
    assert "+" not in link.path


def test_mailto_links_and_emails_use_the_ascii_form_of_the_domain():
    assert split_address("a@café.ma") == ("a", "xn--caf-dma.ma")
    assert mailto("a@café.ma") == "mailto:a@xn--caf-dma.ma"
    assert mailto("no address") == ""
