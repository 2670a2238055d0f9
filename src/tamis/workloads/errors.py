"""What can be wrong with a workload: a knob that no such traffic exists for, or data that is not installed."""

from __future__ import annotations

from typing import Any

from tamis.errors import TamisError


class ParameterError(TamisError, ValueError):
    """A knob of a workload that stands where it cannot."""

    def __init__(self, parameter: str, found: Any, allowed: str) -> None:
        super().__init__(parameter, found, allowed)
        self.parameter, self.found, self.allowed = parameter, found, allowed

    def __str__(self) -> str:
        return f"{self.parameter} must be {self.allowed}, not {self.found!r}"


class MissingPackageError(TamisError, ImportError):
    """A workload over real data whose package is not installed."""

    def __init__(self, workload: str, package: str) -> None:
        super().__init__(workload, package)
        self.workload, self.package = workload, package

    def __str__(self) -> str:
        return f"the workload {self.workload!r} needs the package {self.package}: pip install {self.package}"


def require(is_allowed: bool, parameter: str, found: Any, allowed: str) -> None:
    """Raise unless the knob stands where it may.

    >>> require(0 <= 2 <= 1, "overlap", 2, "a share from 0 to 1")
    Traceback (most recent call last):
        ...
    tamis.workloads.errors.ParameterError: overlap must be a share from 0 to 1, not 2
    """
    if not is_allowed:
        raise ParameterError(parameter, found, allowed)
