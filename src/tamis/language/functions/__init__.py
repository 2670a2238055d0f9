"""Which functions does the language have, and what is to be known of each of them?

- `row`: `Function`, the row that holds everything about one function;
- `meanings`: what the functions of texts, arrays and networks mean (those of numbers are in `values` and `vectors`);
- `table`: `FUNCTIONS`, all rows by name.
"""

from tamis.language.functions.meanings import in_cidr
from tamis.language.functions.row import Function
from tamis.language.functions.table import FUNCTIONS, callable_names, is_callable

__all__ = ["FUNCTIONS", "Function", "callable_names", "in_cidr", "is_callable"]
