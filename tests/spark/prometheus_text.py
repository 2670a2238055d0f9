"""What Prometheus makes of a page of figures, by the rules of its text format."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')


def figures(text):
    """Return the value of every sample; whatever is not as the format has it is a failure.

    A family is one HELP line, one TYPE line and its samples, together; the text ends with a line feed.
    """
    assert text.endswith("\n")
    found, told, kinds = {}, None, {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            _, _, told, _ = line.split(" ", 3)
            assert told not in kinds
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == told
            assert kind in ("counter", "gauge")
            kinds[name] = kind
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == told and told in kinds
            assert (kinds[told] == "counter") == told.endswith("_total")
            found[told + (f"{{{sample[2]}}}" if sample[2] else "")] = float(sample[3])
    return found
