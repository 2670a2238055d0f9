"""Which functions does the language have, and what is to be known of each of them?

- `row`: `Function`, the row that holds everything about one function;
- `meanings`: what the functions of texts, arrays and networks mean (those of numbers are in `values` and `vectors`);
- `table`: `FUNCTIONS`, all rows by name;
- `hosted`: functions that a host adds (`tamis.function`, `tamis.Functions`), within the limits of `deadlines`;
- `importing`: the functions that a setting names, as `module:name`.
"""

from tamis.language.functions.hosted import (
    NO_FUNCTIONS,
    Functions,
    HostedName,
    UserFunction,
    function,
    function_of,
    functions_of,
    hosted_in,
    in_use,
    written_name,
)
from tamis.language.functions.importing import imported_functions
from tamis.language.functions.meanings import in_cidr
from tamis.language.functions.row import Function
from tamis.language.functions.table import FUNCTIONS, callable_names, is_callable

__all__ = [
    "FUNCTIONS",
    "NO_FUNCTIONS",
    "Function",
    "Functions",
    "HostedName",
    "UserFunction",
    "callable_names",
    "function",
    "function_of",
    "functions_of",
    "hosted_in",
    "imported_functions",
    "in_cidr",
    "in_use",
    "is_callable",
    "written_name",
]
