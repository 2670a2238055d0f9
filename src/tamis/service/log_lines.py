"""What does a broker say of itself while it runs? Lines for people, or JSON lines for programs.

Both go to standard error, by the standard `logging`; there is no line per event.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tamis.service.settings import Logging


class JsonForm(logging.Formatter):
    """A line is a JSON object.

    >>> record = logging.LogRecord("tamis.service", logging.INFO, "", 0, "reloaded: %s", ("limits",), None)
    >>> record.created = 0.0
    >>> JsonForm().format(record)
    '{"time": "1970-01-01T00:00:00+00:00", "level": "info", "name": "tamis.service", "message": "reloaded: limits"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "name": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes the lines of a broker that is a process of its own."""


def set_up_logging(settings: Logging) -> None:
    """Have everything of tamis that is worth a line written to standard error."""
    logger = logging.getLogger("tamis")
    logger.handlers = [LineHandler(sys.stderr)]
    logger.propagate = False
    change_logging(settings)


def change_logging(settings: Logging) -> None:
    """Go on with another level and form. Handlers of a program that has a broker inside stay as they are."""
    form = JsonForm() if settings.form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    logger = logging.getLogger("tamis")
    logger.setLevel(settings.level.upper())
    for handler in logger.handlers:
        if isinstance(handler, LineHandler):
            handler.setFormatter(form)
