"""Guest passes that are forged, scratched or badly scanned."""

import base64
import random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.door.guest_pass import PREFIX

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_ANY = _ALPHABET + "018 &é\"'(-è_çà,;:!ضصثقلا\u0000\u202e"
_FOREIGN = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def mutate(chance: random.Random, passes: list[str]) -> str:
    """Return one of the passes with a random change. In rare cases it is still equivalent."""
    text = chance.choice(passes)
    return chance.choice(_WAYS)(chance, text, passes)


def raw_of(text: str) -> bytes:
    """Return the 84 bytes of a pass."""
    return base64.b32decode(text[len(PREFIX) :] + "=")


def _text_of(raw: bytes) -> str:
    return PREFIX + base64.b32encode(raw).decode().rstrip("=")


def _flip_bits(chance, text, _passes):
    raw = bytearray(raw_of(text))
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        raw[chance.randrange(84)] ^= 1 << chance.randrange(8)
    return _text_of(bytes(raw))


def _rewrite_a_field(chance, text, _passes):
    raw = bytearray(raw_of(text))
    fields = ((0, 1), (1, 2), (2, 6), (6, 14), (14, 16), (16, 18), (18, 19), (19, 20), (20, 52),
              (52, 84))  # fmt: skip
    start, end = chance.choice(fields)
    raw[start:end] = chance.randbytes(end - start)
    return _text_of(bytes(raw))


def _splice(chance, text, passes):
    cut = chance.choice((6, 14, 18, 20, 52, chance.randrange(1, 84)))
    return _text_of(raw_of(text)[:cut] + raw_of(chance.choice(passes))[cut:])


def _sign_with_another_key(_chance, text, _passes):
    signed = raw_of(text)[:20]
    return _text_of(signed + _FOREIGN.sign(b"svc-guest-pass-v1" + signed))


def _sign_for_another_purpose(chance, text, _passes):
    signed = raw_of(text)[:20]
    context = chance.choice((b"", b"svc-snapshot-v1", b"svc-guest-pass-v2"))
    return _text_of(signed + _FOREIGN.sign(context + signed))


def _change_characters(chance, text, _passes):
    letters = list(text)
    for _ in range(chance.choice((1, 1, 2, 5))):
        letters[chance.randrange(len(letters))] = chance.choice(_ANY)
    return "".join(letters)


def _swap_neighbours(chance, text, _passes):
    at = chance.randrange(len(text) - 1)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _lose_or_gain(chance, text, _passes):
    at = chance.randrange(len(text))
    more = "".join(chance.choices(_ANY, k=chance.choice((0, 1, 3))))
    return text[:at] + more + text[at + chance.choice((0, 1, 2)) :]


def _cut_off(chance, text, _passes):
    return text[: chance.randrange(len(text))]


_WAYS = (
    _flip_bits, _rewrite_a_field, _splice, _sign_with_another_key, _sign_for_another_purpose,
    _change_characters, _swap_neighbours, _lose_or_gain, _cut_off,
)  # fmt: skip
