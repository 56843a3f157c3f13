"""The box's certificates: creation, timely renewal, and limits of the names."""

import ssl
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.core.errors import OperatorError
from appliance.core.settings import ServerSettings
from appliance.tls.authority import Names, ends_at, names_in, wanted_names
from appliance.tls.certificates import (
    AUTHORITY,
    LEAF,
    Certificates,
    read_certificate,
    read_identity,
)
from tests.clocks import StoppedClock

DAY = 86_400


class World:
    """The certificates of a box whose names and clock a test may change."""

    def __init__(self, folder):
        self.folder = folder
        self.clock = StoppedClock("2026-11-21T19:00:00Z")
        self.names = Names(("localhost", "riad-atlas.local"), ("127.0.0.1", "192.168.1.20"))
        self.has_terminals = False
        self.certificates = Certificates(
            folder, self.clock, lambda: "Riad", lambda: self.names, lambda: self.has_terminals
        )

    def leaf(self):
        return read_certificate(self.folder / LEAF)

    def authority(self):
        return read_certificate(self.folder / AUTHORITY)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "tls")


def handshake(world, host):
    """Whether a client that trusts only the authority accepts the certificate for `host`."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=world.certificates.give_authority())
    return shake(client, world.certificates.context, host)[0].version()


def shake(client, server, host):
    """Return both ends after the handshake, the client's first. Raises ssl.SSLError if it fails."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=host)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    done = set()
    while len(done) < 2:
        for side in (asking, answering):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
    return asking, answering


def test_a_client_that_trusts_the_boxs_authority_accepts_each_name_and_address(world):
    world.certificates.prepare()

    for host in (*world.names.dns, *world.names.addresses):
        assert handshake(world, host) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(world, "bank.example")


def test_private_keys_use_p256_and_are_readable_only_by_their_owner(world):
    world.certificates.prepare()

    for name in (AUTHORITY, LEAF):
        path = world.folder / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert isinstance(read_identity(path).key.curve, ec.SECP256R1)
    (world.folder / LEAF).chmod(0o644)
    with pytest.raises(OperatorError, match="chmod 600"):
        world.certificates.prepare()


def test_the_authority_can_only_sign_for_its_own_names_and_private_addresses(world):
    world.certificates.prepare()

    constraints = world.authority().extensions.get_extension_for_class(x509.NameConstraints)

    permitted = {str(entry.value) for entry in constraints.value.permitted_subtrees}
    assert constraints.critical
    assert permitted == {"localhost", "riad-atlas.local", "127.0.0.0/8", "::1/128", "10.0.0.0/8",
                         "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
                         "fc00::/7"}  # fmt: skip


def test_the_certificate_lasts_less_than_825_days_and_is_renewed_in_its_last_30(world):
    world.certificates.prepare()
    first = world.leaf()
    assert (first.not_valid_after_utc - first.not_valid_before_utc).days <= 825

    world.clock.advance((ends_at(first) - world.clock.now()) / 1000 - 31 * DAY)
    assert not world.certificates.renew()
    world.clock.advance(2 * DAY)
    assert world.certificates.renew()

    assert ends_at(world.leaf()) > ends_at(first)
    assert world.leaf().public_key() != first.public_key()


@pytest.mark.parametrize("is_given", [False, True])
def test_a_certificate_made_while_the_clock_was_ahead_is_replaced_after_correction(world, is_given):
    world.clock.set("2036-02-07T06:28:16Z")
    world.certificates.prepare()
    before = world.authority()
    if is_given:
        world.certificates.give_authority()
    world.clock.set("2026-11-21T19:00:00Z")

    assert world.certificates.renew()

    assert world.leaf().not_valid_before_utc.year == 2026
    assert (world.authority() == before) is is_given
    assert not world.certificates.renew()


@pytest.mark.parametrize("name", ["192.168.7.9", "10.7.0.5", "vm.riad-atlas.local"])
def test_a_new_address_or_name_gets_a_new_certificate_of_the_same_authority_immediately(
    world, name
):
    world.certificates.prepare()
    before, context = world.authority(), world.certificates.context
    dns, addresses = world.names.dns, world.names.addresses
    is_address = name[0].isdigit()
    world.names = Names(dns if is_address else (*dns, name),
                        tuple(sorted((*addresses, name))) if is_address else addresses)  # fmt: skip
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(world, name)

    assert world.certificates.renew()

    assert world.authority() == before
    assert names_in(world.leaf()) == world.names
    assert world.certificates.context is context
    assert handshake(world, name)
    assert not world.certificates.renew()


@pytest.mark.parametrize("has_terminals", [True, False])
def test_an_authority_that_devices_may_trust_is_kept_without_new_names(world, has_terminals):
    world.certificates.prepare()
    world.has_terminals = has_terminals
    if not has_terminals:
        world.certificates.give_authority()
    before = world.authority()
    world.names = Names((*world.names.dns, "dar-lune.local"), world.names.addresses)

    assert not world.certificates.renew()

    assert world.authority() == before
    assert "dar-lune.local" not in names_in(world.leaf()).dns
    assert handshake(world, "riad-atlas.local")


@pytest.mark.parametrize("days", [0, 10])
def test_a_renamed_venue_gets_a_new_authority_if_no_device_trusts_the_old_one(world, days):
    world.certificates.prepare()
    world.clock.advance(days * DAY)
    world.names = Names(("dar-lune.local", "localhost"), world.names.addresses)

    assert world.certificates.renew()

    assert "dar-lune.local" in names_in(world.leaf()).dns
    world.certificates.give_authority()
    world.names = Names(("localhost", "riad-atlas.local"), world.names.addresses)
    kept = world.authority()
    world.certificates.renew()
    assert world.authority() == kept


def test_a_long_arabic_venue_name_is_shortened_to_fit_a_certificate(world):
    world.certificates.venue = lambda: "مطعم النجمة الذهبية على سطح المدينة"

    world.certificates.prepare()

    assert "مطعم النجمة الذهبية" in world.authority().subject.rfc4514_string()
    assert handshake(world, "riad-atlas.local")


def test_tls_versions_below_1_2_are_refused(world):
    world.certificates.prepare()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=world.certificates.give_authority())
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake(client, world.certificates.context, "localhost")[0].version() == "TLSv1.2"
    assert world.certificates.context.minimum_version == ssl.TLSVersion.TLSv1_2
    for cipher in world.certificates.context.get_ciphers():
        assert cipher["aead"]


def test_the_wanted_names_are_the_slug_the_machine_and_those_in_the_settings():
    server = ServerSettings(app_url="https://Riad.lan:443", names=("box.lan", "10.0.0.7"))

    found = wanted_names("Riad-Atlas", server, ["192.168.1.20"])

    assert {"riad-atlas.local", "riad.lan", "box.lan", "localhost"} <= set(found.dns)
    assert found.addresses == ("10.0.0.7", "127.0.0.1", "192.168.1.20", "::1")
    public = wanted_names("riad-atlas", ServerSettings(app_url="https://riad.example"), [])
    assert public == wanted_names("riad-atlas", ServerSettings(), [])
