"""Other texts that can be scanned or typed: guest links, access codes, names."""

import pytest

CODE = "SVC-7K2M"


async def test_a_guest_link_with_any_suffix_works_like_the_pass(door):
    guest = await door.guest(guests=5)
    token = door.environment.keyring.access_token(guest.id, 0)

    for ending in ("", "/", "?lang=fr", "#pass", "  "):
        verdict = await door.scan(f"http://10.0.0.7:8080/access/{token}{ending}", arrivals=1)
        assert verdict["admitted"] == 1, ending
    assert await door.rows("SELECT DISTINCT kind FROM scan_log") == [("link",)]


async def test_a_link_of_the_test_environment_is_refused_at_a_live_door(test_door, door):
    other, of_test = await test_door.guest(), test_door.environment
    link = of_test.links.access(of_test.keyring.access_token(other.id, 0))

    assert (await door.scan(link))["result"] == "unknown_code"


@pytest.mark.parametrize(
    "frame", ["{}", "\x02{}\x03", "\ufeff~{}/", "{}{}", "{} 2026-11-21", "{}/cancel"]
)
@pytest.mark.parametrize("capitals", [False, True])
async def test_guest_links_and_claim_links_are_recognised_as_scanners_send_them(
    door, frame, capitals
):
    guest, environment = await door.guest(guests=2), door.environment
    claim = environment.links.claim(environment.keyring.claim_token(guest.id, 0))
    access = environment.links.access(environment.keyring.access_token(guest.id, 0))
    texts = [frame.replace("{}", link) for link in (claim, access)]
    read = [text.upper() if capitals else text for text in texts]

    verdicts = [await door.scan(text, arrivals=1) for text in read]

    assert [verdict["result"] for verdict in verdicts] == ["checked_in", "party_added"]


@pytest.mark.parametrize("typed", ["SVC-7K2M", "svc-7k2m", "7K2M", " 7k2m ", "svc 7k2m", "٧K٢M"])
async def test_a_spoken_access_code_is_recognised_however_it_is_typed(door, typed):
    await door.guest(access_code=CODE)

    assert (await door.scan(typed))["result"] == "checked_in"


@pytest.mark.parametrize("day", ["2026-11-20", "2026-11-22"])
async def test_a_typed_access_code_is_valid_only_tonight(door, day):
    guest = await door.guest(access_code=CODE, date=day)

    assert (await door.scan("7K2M"))["result"] == "unknown_code"
    assert (await door.scan("7K2M", override={"reason": "ami"}))["result"] == "unknown_code"
    assert (await door.now_of(guest)).arrived == 0


async def test_an_access_code_similar_to_one_of_tonight_is_corrected(door):
    await door.guest(access_code="SVC-Q2SV")

    assert (await door.scan("OZ5U"))["result"] == "checked_in"


async def test_an_exact_access_code_has_priority_over_similar_ones(door):
    await door.guest(access_code="SVC-QQQQ", table="T2")
    guest = await door.guest(access_code="SVC-DDDD")

    assert (await door.scan("DDDD"))["reservation"]["id"] == guest.id


@pytest.mark.parametrize("typed", ["فاطمه", "فَاطِمَة", "الزهراء فـاطمة"])
async def test_a_typed_name_never_admits_by_itself_and_finds_nobody_without_the_role(door, typed):
    guest = await door.guest(customer_name="فاطمة الزهراء")
    there = await door.other(role="scan")

    verdict = await door.scan(typed)

    assert (await there.scan(typed))["result"] == "unknown_code"
    assert verdict["result"] == "ambiguous"
    assert [candidate["id"] for candidate in verdict["candidates"]] == [guest.id]
    assert (await door.now_of(guest)).arrived == 0


async def test_ten_wrong_codes_within_a_minute_block_typed_codes(door):
    await door.guest(access_code=CODE)
    for number in range(10):  # simulated scans count too
        simulate = number % 2 == 0
        assert (await door.scan("2222", simulate=simulate))["result"] == "unknown_code"
    door.clock.advance(59)

    for code in ("2222", CODE):
        status, refusal = await door.call("POST", "/scans", {"scanId": "last", "code": code})
        assert (status, refusal["code"]) == (429, "RATE_LIMITED")


async def test_blocked_typed_codes_do_not_block_scans_or_other_terminals(door):
    guest = await door.guest(access_code=CODE, guests=2)
    for _ in range(10):
        await door.scan("2222")

    assert (await door.scan(await door.pass_of(guest), arrivals=1))["result"] == "checked_in"
    assert (await (await door.other()).scan(CODE))["result"] == "party_added"


async def test_correct_codes_and_repeated_scans_do_not_count_as_wrong(door):
    await door.guest(access_code=CODE)

    results = [(await door.scan(CODE))["result"] for _ in range(12)]
    repeated = [(await door.scan("2222", scanId="one"))["result"] for _ in range(12)]

    assert results == ["checked_in", *["already_checked_in"] * 11]
    assert repeated == ["unknown_code"] * 12
