"""A public certificate by ACME from pebble: ordering, renewal, errors and crashes."""

import stat
from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.tls.certificates import IMPORTED, LEAF, OBTAINED, read_certificate
from tests.journeys.acme_authority import NAME, a_public_box, dns_hook, until
from tests.promises.leaping_time import LeapingTime
from tests.unit.tls.test_importing import a_certificate, pem_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("challenge", ["tls-alpn-01", "dns-01"])
def test_a_certificate_is_obtained_with_each_challenge_and_used_only_for_the_public_name(
    tmp_path, challenge
):
    with a_public_box(tmp_path, challenge) as box:
        hook = dns_hook(tmp_path, box.authority)
        box.process.settings["VENUEBOX_ACME_DNS_HOOK"] = hook
        box.authority.start()
        box.start()

        ended = box.ended()

        assert (ended.reason, ended.detail, ended.attempts) == ("", "", ())
        shown = box.shown(root=box.authority.root())
        assert shown == read_certificate(box.data / "tls" / OBTAINED)
        assert box.shown("riad-atlas.local") == read_certificate(box.data / "tls" / LEAF)
        modes = {path.name: path.stat().st_mode for path in (box.data / "tls").iterdir()}
        assert {stat.S_IMODE(mode) for mode in modes.values()} == {0o600}
        assert "acme-account.pem" in modes
        assert "challenge.pem" not in modes
        assert box.state().account.startswith("https://")
        assert box.check("acme") == "ok"
        assert (tmp_path / "hook.log").exists() == (challenge == "dns-01")


def test_a_refused_order_is_reported_delayed_and_repeated_by_a_command(tmp_path):
    with a_public_box(tmp_path) as box:
        authority = box.authority
        authority.start(domainBlocklist=[NAME])
        box.start()
        refused = box.ended()
        assert refused.reason == "refused"
        assert NAME in refused.detail
        assert box.check("acme") == "fail"
        assert box.shown() == read_certificate(box.data / "tls" / LEAF)

        authority.stop()
        authority.start()
        authority.tell_dns("set-default-ipv4", ip="127.0.0.9")
        status, _, said = box.run("tls", "obtain")
        assert (status, box.state().reason) == (1, "unreached")
        assert NAME in said

        authority.stop()
        status, _, _ = box.run("tls", "obtain")
        assert (status, box.state().reason) == (1, "no_answer")
        first, second, third = box.state().attempts
        assert box.state().retry_at() - third == 80 * 60_000

        authority.start()
        box.process.stop()
        box.start()  # a restart causes no early attempt
        assert box.state().attempts == (first, second, third)
        status, _, said = box.run("tls", "obtain")
        assert (status, box.state().reason) == (0, ""), said
        box.shown(root=authority.root())
        assert box.check("acme") == "ok"


def test_a_box_makes_at_most_four_orders_an_hour_whoever_requests_them(tmp_path):
    with a_public_box(tmp_path) as box:
        box.start()  # no server answers at the directory's address
        assert box.ended().reason == "no_answer"
        for _ in range(3):
            assert box.run("tls", "obtain")[0] == 1
        attempts = box.state().attempts
        assert len(attempts) == 4

        assert box.run("tls", "obtain")[0] == 1

        assert box.state().attempts == attempts


def test_a_certificate_is_renewed_after_two_thirds_of_its_life_and_used_until_then(tmp_path):
    time = LeapingTime(tmp_path)
    make = partial(time.box, folder=tmp_path)
    with a_public_box(tmp_path, make=make) as box:
        box.authority.start()
        box.start()
        before = box.ended()
        first, root = box.shown(), box.authority.root()

        time.leap(50 * 86_400)
        box.authority.stop()  # so that a wrong attempt would fail visibly
        assert box.shown(root=root) == first
        assert box.state() == before

        time.leap(11 * 86_400)
        assert box.shown(root=root) == first
        failed = box.ended(before.ended_at)
        assert failed.reason == "no_answer"
        assert box.shown(root=root) == first

        box.authority.start()
        time.leap(6 * 60)
        box.shown()  # a request wakes the box
        renewed = box.ended(failed.ended_at)
        assert (renewed.reason, renewed.attempts) == ("", ())
        assert box.shown(root=box.authority.root()) != first


@pytest.mark.parametrize("instant", ["add", "remove"])
def test_a_box_killed_during_an_order_orders_again_on_request(tmp_path, instant):
    with a_public_box(tmp_path, "dns-01") as box:
        killing = f'[ "$1" != {instant} ] || [ -e {tmp_path}/killed ] || '
        killing += f"{{ touch {tmp_path}/killed; kill -9 $PPID; }}"
        hook = dns_hook(tmp_path, box.authority, killing)
        box.process.settings["VENUEBOX_ACME_DNS_HOOK"] = hook
        box.authority.start()
        box.start()
        box.process.process.wait(60)
        box.process.kill()
        (begun,) = box.state().attempts
        assert not (box.data / "tls" / OBTAINED).exists()

        box.start()
        assert box.state().attempts == (begun,)  # it waits for 5 minutes or for a request
        status, _, said = box.run("tls", "obtain")

        assert status == 0, said
        box.shown(root=box.authority.root())
        assert box.authority.issued() == 1
        assert box.authority.orders() == 2


def test_an_imported_certificate_is_used_instead_until_it_is_deleted(tmp_path):
    with a_public_box(tmp_path) as box:
        key = ec.generate_private_key(ec.SECP256R1())
        files = [tmp_path / "cert.pem", tmp_path / "key.pem"]
        files[0].write_bytes(a_certificate(key, days=3650, names=(NAME,)))
        files[1].write_bytes(pem_of(key))
        assert box.run("tls", "import", "--cert", str(files[0]), "--key", str(files[1]))[0] == 0
        box.authority.start()
        box.start()
        imported = x509.load_pem_x509_certificate(files[0].read_bytes())
        assert box.shown() == imported
        assert box.run("tls", "obtain")[0] == 1
        assert box.check("acme") == "ok"
        assert (box.state().attempts, box.authority.orders()) == ((), 0)

        box.process.stop()
        (box.data / "tls" / IMPORTED).unlink()
        box.start()

        assert box.ended().reason == ""
        box.shown(root=box.authority.root())

        assert box.run("tls", "import", "--cert", str(files[0]), "--key", str(files[1]))[0] == 0
        until(lambda: box.shown() == imported)
        assert (box.data / "tls" / OBTAINED).exists()
