"""What can go wrong between a caller and standing subscriptions."""

from __future__ import annotations

from tamis.errors import LanguageError, TamisError


class StandingFormError(LanguageError):
    """Steps, names, clauses or a JSON document that make neither a sequence nor a change."""


class SavedStateError(TamisError, ValueError):
    """A state that cannot be written, or a document that does not hold one."""
