"""Could a broker listen here? What is known of a port of this machine, for whoever looks before it starts one."""

from __future__ import annotations

import errno
import socket
from http.client import HTTPConnection, HTTPException

LOOPBACK = "127.0.0.1"


def occupant(port: int) -> str:
    """Return who listens on a port: nobody (""), "a broker", or "another program".

    Raise an `OSError` if this process may not listen there.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server does: old connections do not matter
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return ""
    return "a broker" if _is_broker(port) else "another program"


def _is_broker(port: int) -> bool:
    """Does whoever listens answer as a broker does?"""
    connection = HTTPConnection(LOOPBACK, port, timeout=2.0)
    try:
        connection.request("GET", "/live")
        return connection.getresponse().getheader("Server") == "tamis"
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
