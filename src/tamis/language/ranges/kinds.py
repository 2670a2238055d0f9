"""Which values are of a kind, or of a type?

The sets that others are cut from: what is absent, what is present, the values of each kind of the language and those of
each type of a schema.
"""

from __future__ import annotations

from typing import Final

from tamis.language.ranges.lines import ARRAY, BOOLEAN, DOUBLE, NULL, NUMBER, RECORD, TEXT, TIME
from tamis.language.ranges.value_sets import EVERYTHING, Values, difference

ABSENT: Final[Values] = ((NULL,), (NULL + 1,))
PRESENT: Final[Values] = difference(EVERYTHING, ABSENT)
TEXTS: Final[Values] = ((TEXT,), (TEXT + 1,))
RECORDS: Final[Values] = ((RECORD,), (RECORD + 1,))
KINDS: Final[dict[str, Values]] = {
    "boolean": ((BOOLEAN,), (BOOLEAN + 1,)),
    "number": ((DOUBLE,), (NUMBER + 1,)),
    "string": TEXTS,
    "time": ((TIME,), (TIME + 1,)),
    "array": ((ARRAY,), (ARRAY + 1,)),
    "record": RECORDS,
}
OF_TYPES: Final[dict[str, Values]] = {
    "any": PRESENT,
    "number": KINDS["number"],
    "int": ((NUMBER,), (NUMBER + 1,)),
    "double": ((DOUBLE,), (DOUBLE + 1,)),
    "decimal": ((NUMBER,), (NUMBER + 1,)),
    "string": TEXTS,
    "bool": KINDS["boolean"],
    "timestamp": KINDS["time"],
    "date": KINDS["time"],
    "array": KINDS["array"],
    "record": RECORDS,
    "order": KINDS["boolean"],  # see `Axis.of_order`
}
