"""Settings that would start a box and fail later: they are refused by name before."""

import pytest

from appliance.errors import Trouble
from appliance.settings import parse_settings

DAYS = ["contact_days", "attempt_days", "answer_days", "dead_days", "security_days"]


@pytest.mark.parametrize("name", DAYS)
@pytest.mark.parametrize("days", [0, 36_501, 1_000_000, 10**30])
def test_nothing_is_kept_for_more_days_than_a_calendar_has(name, days):
    with pytest.raises(Trouble, match=rf"retention\.{name} is {days}: 1 to 36500 is allowed"):
        parse_settings(f"[retention]\n{name} = {days}", {})


def test_a_hundred_years_are_allowed_and_so_are_many_rows():
    text = "\n".join(f"{name} = 36500" for name in DAYS)

    found = parse_settings(f"[retention]\n{text}\nattempt_rows = 1000000000", {}).retention

    assert {getattr(found, name) for name in DAYS} == {36_500}


@pytest.mark.parametrize(("name", "most"), [("attempt_rows", 10**9), ("attempt_megabytes", 10**6)])
@pytest.mark.parametrize("value", [0, 10**19])
def test_no_number_is_larger_than_sqlite_takes(name, most, value):
    with pytest.raises(Trouble, match=rf"retention\.{name} is {value}: 1 to {most} is allowed"):
        parse_settings(f"[retention]\n{name} = {value}", {})


@pytest.mark.parametrize(
    "url",
    ["https://[::1", "https://[zz]", "http://x:99999", "http://x:0", "http://x:port",
     "https://a\u2100b.example", "https://x.example\n", "https://x.example ", " https://x.example",
     "https://x y.example", "https://x.example\t", "https://x.example?", "https://x.example#",
     "https://@x.example", "https://<x>", "https://x.example\\"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_by_its_name(url):
    with pytest.raises(Trouble, match=r"^server\.app_url is .*: an address such as https://"):
        parse_settings("", {"VENUEBOX_SERVER_APP_URL": url})


@pytest.mark.parametrize("url", ["https://[::1]:8443", "http://x:65535", "https://x.example"])
def test_an_address_with_a_port_or_in_brackets_is_taken(url):
    assert parse_settings(f'[server]\napp_url = "{url}"', {}).server.app_url == url


@pytest.mark.parametrize("folder", ["usb", "./usb", "../usb", "~/usb"])
def test_backups_go_to_a_place_that_is_the_same_whoever_starts_the_box(folder):
    with pytest.raises(Trouble, match=r"^backup\.directory is .*: a path from the root"):
        parse_settings(f'[backup]\ndirectory = "{folder}"', {})
