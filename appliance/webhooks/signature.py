"""The signature of a webhook (interface, section 6.1)."""

import hmac
from collections.abc import Sequence


def sign(secrets: Sequence[str], t: int, body: bytes) -> str:
    """`X-Service-Signature`: `t=<seconds>,v1=<hex>`, one `v1` for each secret.

    The key of the HMAC is the whole string `whsec_…` as UTF-8. There are two
    secrets during the 24 hours after a roll.
    """
    signed = b"%d." % t + body
    digests = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets]
    return f"t={t}," + ",".join(f"v1={digest}" for digest in digests)
