"""On which port can a server listen that is stopped and started again?

A port that the system chooses is one of those that it also gives to whoever connects to somebody. While a broker is
down, or before it has begun to listen, any connection of any test may take it, and the broker cannot start. So ports
are drawn from those below.
"""

from __future__ import annotations

import socket
from random import Random

_FIRST, _LAST = 10_000, 32_000
"""Below the ports of connections, which begin at 32,768 on Linux and at 49,152 elsewhere."""
_chance = Random()  # not the one of all, which hypothesis seeds: the workers of a run must not draw the same


def free_port() -> int:
    """Return a port of loopback that nobody uses."""
    while True:
        port = _chance.randint(_FIRST, _LAST)
        with socket.socket() as door:
            try:
                door.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
