"""Two-factor sign-in is enabled, used and disabled."""

import pytest

from appliance.core.errors import ChangedMeanwhile, OfferOver, SignInLater
from appliance.staff.accounts import create_staff, disable_staff
from appliance.staff.audit_log import list_audit_entries
from appliance.staff.model import set_password
from appliance.staff.sign_in import OpenedSession, begin_sign_in, change_password
from appliance.staff.two_factor import (
    GivenCode,
    NoSession,
    confirm_two_factor,
    count_recovery_codes,
    offer_two_factor,
    offered_secret,
    pass_password,
    remove_two_factor,
    totp_code,
    verify_second_factor,
)

NAME = "Yasmine"


class House:
    """A box with one person, whose app receives the secret when it is offered."""

    def __init__(self, box, clock):
        self.live, self.clock, self.id, self.secret = box.live, clock, "", b""

    def code(self, beside=0):
        """Return the code that the app shows this many steps from now."""
        return totp_code(self.secret, self.clock.now() // 30_000 + beside)

    async def do(self, action, *args, **kwargs):
        return await self.live.database.write(action, *args, **kwargs)

    async def add(self):
        """Enable two-factor sign-in, and let the used code expire. Return the recovery codes."""
        self.secret = await self.do(offer_two_factor, self.live.keyring, self.id)
        codes = await self.do(confirm_two_factor, self.live.keyring, self.id, self.code())
        self.clock.advance(120)
        return codes

    async def password(self):
        """Enter the right password. Return the secret of the code form."""
        attempt = await self.do(begin_sign_in, NAME, None)
        asked = await self.do(pass_password, attempt, None, "Firefox, Linux")
        assert isinstance(asked, str)
        return asked

    async def give(self, form, code="", recovery=""):
        given = GivenCode(form, code, recovery)
        return await self.do(verify_second_factor, self.live.keyring, given, None, "Firefox, Linux")

    async def noted(self):
        found = await self.live.database.read(list_audit_entries, 50)
        return [entry.what for entry in reversed(found)]


@pytest.fixture
async def house(box, clock):
    def make(tx):
        staff_id = create_staff(tx, NAME, "owner").staff_id
        set_password(tx, staff_id, "none that fits")
        return staff_id

    made = House(box, clock)
    made.id = await made.do(make)
    return made


async def test_an_offered_secret_expires_after_15_minutes_and_never_replaces_an_active_one(house):
    keyring = house.live.keyring
    with pytest.raises(OfferOver):
        await house.do(confirm_two_factor, keyring, house.id, "000000")
    house.secret = await house.do(offer_two_factor, keyring, house.id)
    house.clock.advance(15 * 60)
    with pytest.raises(OfferOver):
        await house.do(confirm_two_factor, keyring, house.id, house.code())

    await house.add()

    with pytest.raises(ChangedMeanwhile):
        await house.do(offer_two_factor, keyring, house.id)
    with pytest.raises(OfferOver):
        await house.live.database.read(offered_secret, keyring, house.id)


async def test_the_stored_secret_is_encrypted_and_recovery_codes_are_hashed(house):
    codes = await house.add()

    def everything(reader):
        tables = ("two_factor", "staff_recovery_code", "audit_log")
        return repr([list(reader.rows(f"SELECT * FROM {name}")) for name in tables])  # noqa: S608

    stored = await house.live.database.read(everything)
    assert repr(house.secret)[2:-1] not in stored
    assert not any(code in stored or code.replace("-", "") in stored for code in codes)


@pytest.mark.parametrize("beside", [-1, 0, 1])
async def test_a_code_signs_in_only_once(house, beside):
    await house.add()
    code = house.code(beside)

    assert isinstance(await house.give(await house.password(), code), OpenedSession)

    assert await house.give(await house.password(), code) is NoSession.WRONG
    house.clock.advance(60 if beside == 1 else 30)
    assert isinstance(await house.give(await house.password(), house.code(1)), OpenedSession)


async def test_a_used_code_stays_used_after_the_clock_was_set_back(house):
    await house.add()
    early, code = house.clock.now(), house.code()
    await house.give(await house.password(), code)
    house.clock.advance(600)
    await house.give(await house.password(), house.code())

    house.clock.milliseconds = early

    assert await house.give(await house.password(), code) is NoSession.WRONG


async def test_a_recovery_code_signs_in_only_once_at_any_clock_time(house):
    first, second, *_ = await house.add()
    house.clock.milliseconds = 0

    typed = first.lower().replace("-", " ")
    assert isinstance(await house.give(await house.password(), recovery=typed), OpenedSession)

    assert await house.give(await house.password(), recovery=first) is NoSession.WRONG
    assert isinstance(await house.give(await house.password(), recovery=second), OpenedSession)
    assert await house.live.database.read(count_recovery_codes, house.id) == 8
    assert (await house.noted()).count("recovery_code_used") == 2


async def test_the_code_form_works_once_and_for_five_minutes(house):
    await house.add()
    form = await house.password()
    await house.give(form, house.code())
    assert await house.give(form, house.code(1)) is NoSession.OVER

    form = await house.password()
    house.clock.advance(300)

    assert await house.give(form, house.code()) is NoSession.OVER
    assert await house.give("", house.code()) is NoSession.OVER


async def test_entering_the_right_password_again_does_not_reset_the_limit_on_codes(house):
    await house.add()
    for _ in range(5):
        assert await house.give(await house.password(), "000000") is NoSession.WRONG

    with pytest.raises(SignInLater):
        await house.password()


@pytest.mark.parametrize("what", ["password", "disabled", "removed"])
async def test_an_unfinished_sign_in_ends_when_its_password_account_or_second_factor_changes(
    house, what
):
    await house.add()
    other = await house.do(lambda tx: create_staff(tx, "Another", "owner").staff_id)
    await house.do(set_password, other, "none that fits")
    form = await house.password()
    if what == "password":
        await house.do(change_password, house.id, "another")
    elif what == "disabled":
        await house.do(disable_staff, house.id)
    else:
        await house.do(remove_two_factor, house.id)

    assert await house.give(form, house.code()) is NoSession.OVER
