"""How does a receiver know that an event comes from this broker, and is not an old one sent again? Signatures.

The signature is an HMAC with SHA-256 over the id, the time and the body. While a secret is being replaced both sign,
and a receiver accepts either.

>>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
>>> signed("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [secret])
'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

Source: Standard Webhooks 1.0.0, "Webhook headers" and "Signature scheme".
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from typing import TYPE_CHECKING

from tamis.service.errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "whsec_"
LEAST_BYTES, MOST_BYTES = 24, 64
"""The length of a key, as the specification has it."""


def new_secret() -> str:
    """Return a secret that nobody has."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """Return the key that a secret stands for; raise an error if it is none."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not (secret.startswith(PREFIX) and LEAST_BYTES <= len(key) <= MOST_BYTES):
        raise BadRequestError(
            "this is not a secret of a webhook",
            f"{PREFIX} and {LEAST_BYTES} to {MOST_BYTES} bytes in base64, or none, and one is made",
        )
    return key


def signed(message_id: str, time_s: int, body: bytes, secrets_: Iterable[str]) -> str:
    """Return the header `webhook-signature`: a signature for each secret."""
    content = f"{message_id}.{time_s}.".encode() + body
    digests = (hmac.digest(key_of(secret), content, "sha256") for secret in secrets_)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
