"""An issuer of tokens on loopback: it signs with real keys, and answers discovery and key sets over HTTP."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

RSA_KEY = rsa.generate_private_key(65_537, 2_048)
OTHER_RSA_KEY = rsa.generate_private_key(65_537, 2_048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
_WRITERS = {"RSA": RSAAlgorithm, "EC": ECAlgorithm, "OKP": OKPAlgorithm}


def jwk(key, kid=None, **members):
    """Return the public part of a key as an entry of a key set."""
    kind = (
        "RSA" if isinstance(key, rsa.RSAPrivateKey) else "EC" if isinstance(key, ec.EllipticCurvePrivateKey) else "OKP"
    )
    entry = _WRITERS[kind].to_jwk(key.public_key(), as_dict=True)
    return entry | ({} if kid is None else {"kid": kid}) | members


def key_set(*entries):
    return json.dumps({"keys": list(entries)}).encode()


def signed(claims, key=RSA_KEY, algorithm="RS256", kid="one", **header):
    return jwt.encode(claims, key, algorithm, {"kid": kid, **header} if kid is not None else header)


class Provider:
    """A provider of OpenID Connect; what it answers is set by the test."""

    def __init__(self) -> None:
        self.url = ""
        self.keys = [jwk(RSA_KEY, "one")]
        self.asked = []
        self.discovery_changes = {}
        self.answer = None
        """What is done instead of answering with keys, if anything."""
        self._runner = None

    @property
    def issuer(self):
        return self.url

    def token(self, sub="ann", roles=("shop",), key=RSA_KEY, algorithm="RS256", kid="one", ends_s=600, **claims):
        now = int(time.time())
        content = {
            "iss": self.issuer,
            "aud": "tamis",
            "sub": sub,
            "roles": list(roles),
            "iat": now,
            "exp": now + ends_s,
        }
        return signed({**content, **claims}, key, algorithm, kid)

    async def start(self, port=0):
        application = web.Application()
        application.router.add_get("/.well-known/openid-configuration", self._discovery)
        application.router.add_get("/keys", self._keys)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def stop(self):
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _discovery(self, request):
        self.asked.append("discovery")
        return web.json_response({"issuer": self.issuer, "jwks_uri": f"{self.url}/keys"} | self.discovery_changes)

    async def _keys(self, request):
        self.asked.append("keys")
        if self.answer is not None:
            return await self.answer(request)
        return web.json_response({"keys": self.keys})


@asynccontextmanager
async def providing():
    """Give a provider that answers; stop it at the end."""
    provider = Provider()
    await provider.start()
    try:
        yield provider
    finally:
        await provider.stop()
