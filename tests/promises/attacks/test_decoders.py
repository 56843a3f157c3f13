"""Every decoder accepts its input or refuses it in the documented way.

Half of the input is valid data with random changes, so that it passes the first checks. `SOAK=1`
tries a hundred times as many.
"""

import base64
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib import resources
from pathlib import Path

import msgspec
import pyrage
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.backup.archive import Manifest, open_backup, read_archive
from appliance.backup.recovery_key import RecoveryKey, parse_recovery_key
from appliance.clock import newest_zone_database
from appliance.core.errors import ApiError, OperatorError
from appliance.core.i18n import load_languages
from appliance.core.saved_settings import settings_example
from appliance.core.settings import parse_settings
from appliance.core.tokens import Keyring
from appliance.door.guest_pass import GuestPass, decode_passes, encode_pass, parse_access_code
from appliance.door.terminals import Terminal
from appliance.http.request import parse_object
from appliance.reservations.request import parse_booking
from appliance.tls.authority import Names, make_authority
from appliance.venue.model import parse_date
from appliance.venue.table_list import parse_tables
from appliance.venue.venue_file import parse_venue_file
from appliance.webhooks.endpoints import parse_ca
from terminal_bridge.agent.client import Identity, OutOfReach, _parse_response
from terminal_bridge.agent.offline import read_snapshot
from terminal_bridge.api.protocol import parse_offline_scans, parse_request
from terminal_bridge.scanners.scanner import Lines
from tests.builders import a_body
from tests.soak.scale import FULL
from web.hosts import Hosts
from web.portal.cookies import describe_device
from web.portal.forms import Form

EXAMPLES = 5000 if FULL else 50
ID = "01890000-0000-7000-8000-000000000001"
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEYRING = Keyring(bytes(range(32)), "live")
KEY = RecoveryKey(str(pyrage.x25519.Identity.generate()))
ZONES = newest_zone_database()
TERMINAL = Terminal(ID, "Front door", "override", "fr", 0, None, None)
HOSTS = Hosts(("https://box.example",), ("venue.lan",), lambda: "riad-atlas")
LANGUAGES = load_languages()
MANIFEST = msgspec.json.encode(
    Manifest("Riad Atlas", ID, 1, "2026-11-21T19:00:00.000Z", "0.1.0", 1, {})
)
PASS = encode_pass(GuestPass(1, 7, b"venu", b"pass-id8", date(2026, 11, 21), "19:30", 2, 1), SIGNER)
SCAN = {"scanId": "a", "code": PASS, "at": "2026-11-21T19:00:00Z", "arrivals": 2,
        "override": {"reason": "known"}, "shown": "admitted"}  # fmt: skip


@dataclass(frozen=True)
class Decoder:
    read: Callable[[bytes], object]
    genuine: bytes
    refuses: tuple[type[Exception], ...] = ()


def of_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda raw: read(raw.decode("utf-8", "replace"))


def of_json(read: Callable[[dict], object]) -> Callable[[bytes], object]:
    return lambda raw: read(parse_object(raw))


def a_backup():
    """Return a complete backup of empty files."""
    made = io.BytesIO()
    names = {"manifest.json": MANIFEST, "live.db": b"", "test.db": b"", "secrets/master.key": b""}
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return pyrage.encrypt(made.getvalue(), [KEY.identity.to_public()])


def read_backup(raw):
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(raw)
        with open_backup(Path(file.name)) as backup:
            read_archive(backup, KEY, None, lambda *_: None, 1)


def read_lines(raw: bytes) -> object:
    lines = Lines()
    return lines.feed(raw), lines.pause()


def read_form(raw: bytes) -> object:
    form = Form({"name": raw.decode("utf-8", "surrogateescape")})
    return form.text("name"), form.lines("name"), form.all("name"), form.integer("name", 0, 99)


def read_links(text: str) -> object:
    readers = (
        KEYRING.read_access_token, KEYRING.read_claim_token, KEYRING.read_device_token,
        KEYRING.read_form_token, KEYRING.read_echo_token,
    )  # fmt: skip
    return [read(text) for read in readers]


def read_signed(payload: str) -> object:
    signature = SIGNER.sign(b"svc-snapshot-v1" + payload.encode())
    text = base64.urlsafe_b64encode(signature).decode().rstrip("=")
    return read_snapshot({"payload": payload, "kid": 1, "signature": text}, SIGNING_BRIDGE)


PUBLIC = SIGNER.public_key().public_bytes_raw()
SIGNING_BRIDGE = Identity(
    "http://box", keys=((1, base64.urlsafe_b64encode(PUBLIC).decode().rstrip("=")),)
)
SAID = {"environment": SIGNING_BRIDGE.environment, "venueTag": SIGNING_BRIDGE.venue_tag,
        "madeAt": "2026-11-21T19:00:00Z", "expiresAt": "2026-11-22T07:00:00Z",
        "evening": "2026-11-21", "earlyMinutes": 60, "timeZone": "Africa/Casablanca",
        "passes": []}  # fmt: skip


CERTIFICATE = make_authority("Riad Atlas", Names(("riad-atlas.local",), ()), 0).certificate
BRIDGE = Identity("http://box", keys=((1, "A" * 43),))
VENUE = resources.files("web").joinpath("demo_venue.toml").read_bytes()
DECODERS = {
    "guest pass": Decoder(of_text(lambda text: list(decode_passes(text))), PASS.encode()),
    "links": Decoder(of_text(read_links), KEYRING.access_token(ID, 0).encode()),
    "access code": Decoder(of_text(parse_access_code), b"SVC-4F7K"),
    "date": Decoder(of_text(parse_date), b"2026-11-21"),
    "json": Decoder(parse_object, json.dumps(a_body()).encode(), (ApiError,)),
    "booking": Decoder(of_json(parse_booking), json.dumps(a_body()).encode(), (ApiError,)),
    "scan": Decoder(
        of_json(lambda body: parse_request(body, TERMINAL)), json.dumps(SCAN).encode(), (ApiError,)
    ),
    "scans made apart": Decoder(
        of_json(lambda body: parse_offline_scans(body.get("scans"), TERMINAL)),
        json.dumps({"scans": [SCAN]}).encode(),
        (ApiError,),
    ),
    "pasted tables": Decoder(
        of_text(parse_tables), b"T1-T12;Terrasse;2;4;terrace;500\nT13,Coin,2,8"
    ),
    "venue file": Decoder(
        of_text(lambda text: parse_venue_file(text, ZONES)), VENUE, (OperatorError,)
    ),
    "settings file": Decoder(
        of_text(lambda text: parse_settings(text, {})),
        settings_example().encode(),
        (OperatorError,),
    ),
    "backup": Decoder(read_backup, a_backup(), (OperatorError,)),
    "recovery key": Decoder(of_text(parse_recovery_key), KEY.text.encode(), (OperatorError,)),
    "snapshot": Decoder(
        of_json(lambda signed: read_snapshot(signed, BRIDGE)),
        json.dumps({"payload": "{}", "kid": 1, "signature": "A" * 86}).encode(),
        (ApiError,),
    ),
    "what a snapshot says": Decoder(of_text(read_signed), json.dumps(SAID).encode()),
    "the box's answer": Decoder(
        lambda raw: _parse_response(200, raw), b'{"items": []}', (OutOfReach,)
    ),
    "a reader's line": Decoder(read_lines, f"\x02{PASS}\r\n".encode()),
    "form": Decoder(read_form, b"12", (ApiError,)),
    "Host": Decoder(of_text(HOSTS.allows), b"riad-atlas.local:8080"),
    "Accept-Language": Decoder(of_text(LANGUAGES.accepted), b"ar;q=0.9, fr-MA;q=0.8, *;q=0"),
    "User-Agent": Decoder(of_text(describe_device), b"Mozilla/5.0 (X11; Linux) Firefox/140.0"),
    "certificate": Decoder(
        of_text(parse_ca), CERTIFICATE.public_bytes(Encoding.PEM), (ApiError, OperatorError)
    ),
}
# What has brought down parsers elsewhere.
NASTY = [
    b"", b"\x00", b"[" * 50_000, b'{"a":' * 20_000, b"a=" + b"[" * 50_000, b"a." * 5_000 + b"a=1",
    b"9" * 5_000, b"a=" + b"9" * 5_000, b'{"a":' + b"9" * 5_000 + b"}", b"a={" * 5_000,
    b"-" * 9_000, b"1\r2",
    "\u0660\u0661\u0662".encode(), "\u202e\u2066".encode(), b"\xff\xfe", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"1e999999", b"NaN", b"[::1", b"//[", b"%" * 500, b"\r\n" * 500, b"=" * 900,
]  # fmt: skip


ANYTHING = st.binary(max_size=200) | st.text(max_size=200).map(str.encode)


def spoiled(genuine: bytes) -> st.SearchStrategy[bytes]:
    """Return the valid data with one part replaced."""
    place = st.integers(0, len(genuine))
    return st.builds(
        lambda one, other, junk: genuine[: min(one, other)] + junk + genuine[max(one, other) :],
        place,
        place,
        st.binary(max_size=12) | st.text(max_size=12).map(str.encode) | st.sampled_from(NASTY),
    )


@pytest.mark.parametrize("name", DECODERS)
def test_genuine_input_is_decoded_and_known_parser_attacks_never_crash_a_decoder(name):
    decoder = DECODERS[name]
    decoder.read(decoder.genuine)
    for raw in NASTY:
        for text in (
            raw,
            decoder.genuine + raw,
            decoder.genuine[: len(decoder.genuine) // 2] + raw,
        ):
            with suppress(*decoder.refuses):
                decoder.read(text)


@pytest.mark.parametrize("name", DECODERS)
def test_any_input_is_decoded_or_refused_as_documented(name):
    decoder = DECODERS[name]

    @settings(max_examples=EXAMPLES, database=None)
    @given(ANYTHING | spoiled(decoder.genuine))
    def check(raw):
        with suppress(*decoder.refuses):
            decoder.read(raw)

    check()
