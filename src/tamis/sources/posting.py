"""How is something sent to a webhook that may be down, busy or wrong? Retries with backoff.

By asking again while that can help: a server that fails (5xx), is busy (429) or does not answer is asked again after
a pause that grows, with chance in it so that many tasks do not come back together, and not before the time that it
asks for (`Retry-After`). Any other answer is final: asking again would not change it. The key of a request says the
same each time, so a receiver that has taken it and could not say so knows it again.

Deciding is apart from doing: `verdict` and `pause_s` are plain functions.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from random import Random
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tamis.sources.addresses import without_secrets
from tamis.sources.errors import OptionError, WebhookError
from tamis.sources.schemes.table import WEBHOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SHOWN = 200
"""So many characters of an answer are shown."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 30.0


def verdict(status: int) -> str:
    """Say what a status means for us: "taken", "again" or "refused".

    >>> [verdict(status) for status in (200, 204, 302, 400, 408, 429, 500, 503)]
    ['taken', 'taken', 'refused', 'refused', 'again', 'again', 'again', 'again']
    """
    if 200 <= status < 300:
        return "taken"
    return "again" if status >= 500 or status in (408, 425, 429) else "refused"


def pause_s(attempt: int, retry_after: str | None, now_s: float, chance: float) -> float:
    """Return how long to wait after an attempt, the first being 0: by chance up to a limit that doubles each time.

    >>> pause_s(0, None, 0, 0.5), pause_s(3, None, 0, 0.5), pause_s(30, None, 0, 1.0)
    (0.05, 0.4, 30.0)
    >>> pause_s(0, "7", 0, 0.0), pause_s(0, "Thu, 01 Jan 1970 00:00:09 GMT", 4, 0.0), pause_s(0, "soon", 0, 0.0)
    (7.0, 5.0, 0.0)
    """
    own_s = chance * min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * float(2 ** min(attempt, 30)))
    return max(own_s, _asked_s(retry_after, now_s))


def _asked_s(retry_after: str | None, now_s: float) -> float:
    """Return the pause that a server asks for: a number of seconds, or a date."""
    if not retry_after:
        return 0.0
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - now_s)
    except ValueError:
        return 0.0


@dataclass
class Posting:
    """Sends bodies to one URL."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    """How long one answer may take."""
    patience_s: float = 60.0
    """How long to ask again."""
    chance: Callable[[], float] = field(default_factory=lambda: Random().random)
    wait: Callable[[float], Any] = sleep

    def post(self, body: bytes, key: str) -> int:
        """Send a body until it is taken; return how many attempts that took."""
        deadline = monotonic() + self.patience_s
        attempt = 0
        while True:
            status, answer, retry_after = self._tried(body, key)
            meaning = "again" if status is None else verdict(status)
            if meaning == "taken":
                return attempt + 1
            pause = pause_s(attempt, retry_after, time(), self.chance())
            attempt += 1
            if meaning == "refused" or monotonic() + pause > deadline:
                tries = f" (after {attempt} attempts)" if attempt > 1 else ""
                raise WebhookError(without_secrets(self.url), status, _shown(answer) + tries) from None
            self.wait(pause)

    def _tried(self, body: bytes, key: str) -> tuple[int | None, str, str | None]:
        """Send once; return the status, what the answer begins with, and when to come back; no status: no answer."""
        sent = {"Content-Type": "application/json", **self.headers, "Idempotency-Key": key}
        request = urllib.request.Request(self.url, body, sent, method="POST")
        try:
            with _OPENER.open(request, timeout=self.timeout_s) as answer:
                answer.read(_SHOWN)
                return answer.status, "", None
        except urllib.error.HTTPError as error:
            with error:
                if error.code in (301, 302, 303, 307, 308):
                    target = error.headers.get("Location", "elsewhere")
                    return error.code, f"it has moved to {without_secrets(target)}; give that address", None
                return error.code, _beginning(error), error.headers.get("Retry-After")
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            return None, str(reason) or type(reason).__name__, None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET without a body: that is nobody's wish."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def checked_url(url: str | None) -> str:
    """Return a URL that can be posted to, or say what is wrong with it.

    >>> checked_url("ftp://example.org")
    Traceback (most recent call last):
        ...
    tamis.sources.errors.OptionError: ftp://example.org is not a webhook address: https://host/path
    """
    if not url:
        raise OptionError(f"no webhook was named; give its url: {WEBHOOK.form}")
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in WEBHOOK.prefixes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good or any(not "!" <= character <= "~" for character in url):
        raise OptionError(f"{without_secrets(url)} is not a webhook address: {WEBHOOK.form}")
    if "@" in parts.netloc:
        raise OptionError(
            f"{without_secrets(url)}: a name and a password go into a header, "
            "such as the option header.Authorization, where no log shows them"
        )
    return url


def _beginning(answer: Any) -> str:
    try:
        return bytes(answer.read(4 * _SHOWN)).decode(errors="replace")
    except (OSError, HTTPException):
        return ""


def _shown(answer: str) -> str:
    """Return the beginning of an answer as one line."""
    line = "".join(character if character.isprintable() else " " for character in answer)
    line = " ".join(line.split())
    return (line[:_SHOWN] + "…" if len(line) > _SHOWN else line) or "nothing more is said"
