"""Which algorithms are there? A registry; the conformance suite tests whatever stands in it.

The flagship and the definition are part of this package. The algorithms of the literature are a plug-in
(`tamis.literature`): their names are known here, their classes are imported when one of them is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tamis.literature import is_installed, loaded
from tamis.matching.block.algorithm import BlockAlgorithm
from tamis.matching.errors import UnknownAlgorithmError
from tamis.matching.naive import Naive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.matching.base import Algorithm

OWN: dict[str, type[Algorithm]] = {algorithm.name: algorithm for algorithm in (BlockAlgorithm, Naive)}
PUBLISHED = (
    "boolean",
    "counting",
    "cluster",
    "gryphon",
    "atree",
    "atree-zero",
    "atree-general",
    "atree-published",
    "counting-sliced",
    "cluster-several",
)
"""The names of the plug-in's algorithms, so that one that is not installed can be told from one that does not exist."""


class Algorithms(Mapping[str, "type[Algorithm]"]):
    """All algorithms that can be had here, by name.

    >>> ALGORITHMS["block"].__name__, "atree" in ALGORITHMS
    ('BlockAlgorithm', True)
    """

    def __getitem__(self, name: str) -> type[Algorithm]:
        if name in OWN:
            return OWN[name]
        if name in PUBLISHED:
            plug_in = loaded("matching.algorithms", f"the algorithm {name!r}")
            published: Mapping[str, type[Algorithm]] = plug_in.ALGORITHMS
            return published[name]
        raise UnknownAlgorithmError(name, tuple(self))

    def __contains__(self, name: object) -> bool:
        return name in OWN or (name in PUBLISHED and is_installed())

    def __iter__(self) -> Iterator[str]:
        yield from OWN
        if is_installed():
            yield from PUBLISHED

    def __len__(self) -> int:
        return sum(1 for _ in self)


ALGORITHMS = Algorithms()
