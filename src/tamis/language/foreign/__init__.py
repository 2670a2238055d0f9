"""How do rules that were written for another system become conditions of this language? Translators.

`eventbridge` reads the event patterns of Amazon EventBridge, `cesql` the expressions of CloudEvents SQL. What comes out
is a `Translation`: a condition, and under which assumptions about the events it says exactly what the rule says. What
cannot be said here is an error that names it.
"""

from tamis.language.foreign.translation import Assumption, Translation, translate

__all__ = ["Assumption", "Translation", "translate"]
