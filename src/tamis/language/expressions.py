"""What a subscription says: an immutable tree of conditions over terms.

A *condition* is true, false or unknown for an event; a *term* has a value. An attribute or a Boolean
literal may stand where a condition is expected, as in SQL. Comparisons with literals, tests and
their like are *predicates*, the leaves as far as the matching algorithms are concerned.

Nodes are frozen, and know their hash from birth: equal sub-expressions are found in constant time, and
nothing here recurses, so an expression of any depth can be hashed, compared, pickled and dropped.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, fields
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Scalar: TypeAlias = bool | int | Decimal | float | str | dt.date | dt.datetime | None
"""The value of a literal."""

T = TypeVar("T")


class Branching(Protocol):
    """What has children."""

    @property
    def children(self) -> tuple[Any, ...]: ...


N = TypeVar("N", bound=Branching)
_set = object.__setattr__


def _getter(names: str | tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads some fields as a tuple, or the one field that is a tuple; written in C where there is a way."""
    if isinstance(names, str) or len(names) > 1:
        get: Callable[[Any], tuple[Any, ...]] = attrgetter(*((names,) if isinstance(names, str) else names))
        return get
    if not names:
        return lambda node: ()
    one = attrgetter(names[0])
    return lambda node: (one(node),)


class _Derived(property):
    """A property that follows from the fields of a class; one that a class writes itself is no such."""


_NO_LABEL = _Derived(lambda node: None)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression:
    """A node. `children` are its sub-expressions, `own` is everything else that it is made of.

    A class declares its fields, and once, in `CHILDREN`, which of them are sub-expressions: the names of the fields
    that hold one each, or the name of the one that holds all of them. Everything that goes through expressions
    (walks, comparison, copies over other children, pickling) reads `children`, `own` and `made`, which follow from
    that.

    >>> Compare.CHILDREN, And.CHILDREN
    (('left', 'right'), 'operands')
    >>> node = Compare("<", Attribute(("price",)), Literal(20))
    >>> node.own, Compare.made(node.children, node.own) == node
    (('<',), True)
    """

    CHILDREN: ClassVar[str | tuple[str, ...]] = ()
    _is_own_first: ClassVar[bool] = True
    _is_whole: ClassVar[bool] = False
    """Does one field hold all children?"""

    _hash: int = field(init=False)

    def __init_subclass__(cls) -> None:
        # Called again for each dataclass when it gets its slots; only then are its fields known.
        names = [each.name for each in fields(cls) if each.init]
        cls._is_whole = isinstance(cls.CHILDREN, str)
        inside = (cls.CHILDREN,) if isinstance(cls.CHILDREN, str) else cls.CHILDREN
        rest = tuple(name for name in names if name not in inside)
        cls._is_own_first = bool(names) and names[0] in rest
        cls.children = property(_getter(cls.CHILDREN))  # type: ignore[assignment, method-assign]
        cls.own = property(_getter(rest))  # type: ignore[assignment, method-assign]
        if isinstance(cls.__dict__.get("label", _NO_LABEL), _Derived):
            cls.label = _Derived(attrgetter(*rest)) if rest else _NO_LABEL  # type: ignore[assignment, method-assign]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The sub-expressions, in order."""
        return ()

    @property
    def own(self) -> tuple[Any, ...]:
        """What the node is made of besides its children, in the order of its fields."""
        return ()

    @property
    def label(self) -> Any:
        """What distinguishes this node from others of its class with the same children."""
        return None

    @classmethod
    def made(cls, children: tuple[Expression, ...], own: tuple[Any, ...]) -> Self:
        """Return a node of this class from its children and the rest."""
        inside: tuple[Any, ...] = (children,) if cls._is_whole else children
        return cls(*own, *inside) if cls._is_own_first else cls(*inside, *own)

    def with_children(self, children: tuple[Expression, ...]) -> Self:
        """Return this node over other sub-expressions."""
        if not children:
            return self
        # The same as `made`, without a call more: rewrites spend their time here.
        kind: Any = type(self)
        node: Self
        if kind._is_own_first:
            node = kind(*self.own, children) if kind._is_whole else kind(*self.own, *children)
        else:
            node = kind(children, *self.own) if kind._is_whole else kind(*children, *self.own)
        return node

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expression):
            return NotImplemented
        pairs: list[tuple[Expression, Expression]] = [(self, other)]
        seen: set[tuple[int, int]] = set()  # what rewrites make may be a graph, whose tree is far larger
        while pairs:
            one, two = pairs.pop()
            if one is two:
                continue
            if one._hash != two._hash or type(one) is not type(two) or one.label != two.label:
                return False
            mine, theirs = one.children, two.children
            if len(mine) != len(theirs):
                return False
            if mine and (id(one), id(two)) not in seen:
                seen.add((id(one), id(two)))
                pairs.extend(zip(mine, theirs, strict=True))
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unflatten, (_flatten(self),))

    def __copy__(self) -> Expression:
        return self

    def __deepcopy__(self, memo: object) -> Expression:
        return self

    def __str__(self) -> str:
        from tamis.language.printer import to_text

        return to_text(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def to_json(self) -> str:
        """Return the JSON form, which `tamis.from_json` reads back.

        >>> import tamis
        >>> tamis.parse("price < 20").to_json()
        '{"tamis":1,"expression":{"compare":"<","arguments":[{"attribute":["price"]},20]}}'
        """
        from tamis.language.json_form import to_json

        return to_json(self)


class Term(Expression):
    """An expression that has a value."""

    __slots__ = ()


class Condition(Expression):
    """An expression that is true, false or unknown. Combine them with `&`, `|`, `^` and `~`."""

    __slots__ = ()

    def __and__(self, other: object) -> And:
        return And(_joined(And, self, other))

    def __rand__(self, other: object) -> And:
        return And(_joined(And, other, self))

    def __or__(self, other: object) -> Or:
        return Or(_joined(Or, self, other))

    def __ror__(self, other: object) -> Or:
        return Or(_joined(Or, other, self))

    def __xor__(self, other: object) -> Xor:
        return Xor(_joined(Xor, self, other))

    def __rxor__(self, other: object) -> Xor:
        return Xor(_joined(Xor, other, self))

    def __invert__(self) -> Not:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition has no truth value of its own; combine conditions with & | ~ instead of and, or, not, "
            "and ask tamis.holds(condition, event) for its value"
        )


def _joined(kind: type[And] | type[Or] | type[Xor], *operands: object) -> tuple[Expression, ...]:
    """The operands of `a & b`, with those of an `a` that is itself an And in its place."""
    from tamis.language.builder import condition

    joined: list[Expression] = []
    for operand in operands:
        node = condition(operand)
        joined.extend(node.children if type(node) is kind else (node,))
    return tuple(joined)


def _literal_key(value: Scalar) -> tuple[type, Any]:
    # 1, 1.0 and True are equal in Python and different here; NaN equals itself here and not in Python;
    # 0.0 and -0.0 print differently.
    return (type(value), repr(value) if type(value) is float else value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal(Term):
    """A constant. Its Python type is its type in the language; None is NULL."""

    value: Scalar

    def __post_init__(self) -> None:
        _set(self, "_hash", hash(_literal_key(self.value)))

    @property
    def label(self) -> tuple[type, Any]:
        return _literal_key(self.value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribute(Term):
    """A value of the event, by its path: `position.x` is ("position", "x")."""

    path: tuple[str, ...]

    def __post_init__(self) -> None:
        _set(self, "_hash", hash(("attribute", self.path)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Term):
    """A function that gives a value: arithmetic, `lower`, `size`, `distance`, ... (see `functions.py`)."""

    CHILDREN: ClassVar[str | tuple[str, ...]] = "arguments"

    function: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _set(self, "_hash", hash(("call", self.function, self.arguments)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(Condition):
    """`left operator right`, the operator one of `= <> < <= > >= <=>`."""

    CHILDREN: ClassVar[str | tuple[str, ...]] = ("left", "right")

    operator: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        _set(self, "_hash", hash((self.operator, self.left._hash, self.right._hash)))


MIRRORED = {"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""What each operator is with its sides exchanged."""
COMPLEMENTS = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""What is true where a comparison is false, and unknown where it is. `<=>` has no such operator."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Between(Condition):
    """`value BETWEEN low AND high`, both ends included."""

    CHILDREN: ClassVar[str | tuple[str, ...]] = ("value", "low", "high")

    value: Expression
    low: Expression
    high: Expression

    def __post_init__(self) -> None:
        _set(self, "_hash", hash(("between", self.value._hash, self.low._hash, self.high._hash)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Unary(Condition):
    """What the conditions about a single expression have in common."""

    CHILDREN: ClassVar[str | tuple[str, ...]] = ("value",)

    value: Expression

    def __post_init__(self) -> None:
        _set(self, "_hash", hash((type(self).__name__, self.value._hash, self.label)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class In(_Unary):
    """`value IN (literal, ...)`. The values are kept apart from `children`: there may be a million of them."""

    values: tuple[Scalar, ...]

    @property
    def label(self) -> tuple[tuple[type, Any], ...]:
        return tuple(map(_literal_key, self.values))


class IsNull(_Unary):
    """`value IS NULL`, which is never unknown."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsA(_Unary):
    """`value IS A 'Type'`: the value names this event type or a subtype of it."""

    event_type: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Like(_Unary):
    r"""`value LIKE pattern ESCAPE escape`: `%` is any text, `_` any character."""

    pattern: str
    escape: str = "\\"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RLike(_Unary):
    """`value RLIKE pattern`: the regular expression is found somewhere in the value."""

    pattern: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Test(Condition):
    """A function that is true, false or unknown: `contains`, `array_contains`, `in_cidr`, ..."""

    __test__: ClassVar[bool] = False  # pytest must not collect it

    CHILDREN: ClassVar[str | tuple[str, ...]] = "arguments"

    function: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _set(self, "_hash", hash(("test", self.function, self.arguments)))


class Not(_Unary):
    """True where its operand is false; unknown stays unknown."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Junction(Condition):
    """What the n-ary connectives have in common."""

    CHILDREN: ClassVar[str | tuple[str, ...]] = "operands"

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if len(self.operands) < 2:
            raise ValueError(f"{type(self).__name__} takes two operands or more")
        _set(self, "_hash", hash((type(self).__name__, self.operands)))


class And(_Junction):
    """True where all operands are."""

    __slots__ = ()


class Or(_Junction):
    """True where at least one operand is."""

    __slots__ = ()


class Xor(_Junction):
    """True where an odd number of operands is; unknown where one of them is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AtLeast(Condition):
    """True where `count` or more operands are; false where no more than that can become true."""

    CHILDREN: ClassVar[str | tuple[str, ...]] = "operands"

    count: int
    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if not self.operands or self.count < 0:
            raise ValueError("AtLeast takes a count that is not negative and one operand or more")
        _set(self, "_hash", hash(("at least", self.count, self.operands)))


TRUE = Literal(True)
FALSE = Literal(False)
UNKNOWN = Literal(None)

CONNECTIVES = (And, Or, Xor, Not, AtLeast)
"""The conditions made of conditions. Every other condition is a predicate."""


def is_condition(node: Expression) -> bool:
    """May this stand where a condition is expected? Attributes, TRUE, FALSE and NULL may, as in SQL."""
    return (
        isinstance(node, Condition | Attribute)
        or node is TRUE
        or node is FALSE
        or (isinstance(node, Literal) and (node.value is None or isinstance(node.value, bool)))
    )


def as_condition(node: Expression) -> Expression | None:
    """Return what a node says where a condition is expected; None where it can say nothing.

    A function whose result may be of any kind may give a Boolean, as `coalesce(sold, FALSE)` does. It is a term, so it
    is compared with TRUE: that is true and false just where it gives TRUE and FALSE.

    >>> print(as_condition(Call("coalesce", (Attribute(("sold",)), FALSE))))
    coalesce(sold, FALSE) = TRUE
    """
    if is_condition(node):
        return node
    from tamis.language.functions import function_of

    if isinstance(node, Call) and function_of(node.function).gives == "any":
        return Compare("=", node, TRUE)
    return None


def postorder(root: Expression) -> Iterator[Expression]:
    """Yield every occurrence of every node, children before parents, without recursion."""
    stack: list[tuple[Expression, bool]] = [(root, False)]
    while stack:
        node, seen = stack.pop()
        children = node.children
        if seen or not children:
            yield node
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children))


def fold(root: Expression, combine: Callable[[Expression, list[T]], T]) -> T:
    """Compute a value bottom-up: `combine(node, values of its children)`.

    >>> import tamis
    >>> fold(tamis.parse("a = 1 AND b = 2"), lambda node, below: 1 + sum(below))
    7
    """
    values: list[T] = []
    for node in postorder(root):
        count = len(node.children)
        if count:
            below = values[-count:]
            del values[-count:]
        else:
            below = []
        values.append(combine(node, below))
    return values[0]


def fold_shared(root: N, combine: Callable[[N, list[T]], T]) -> T:
    """Compute like `fold`, but once per distinct sub-expression, however often it occurs.

    What a rewrite makes is often a graph whose tree is far larger than itself; only this walk is safe there. It serves
    whatever has children of its own kind.
    """
    values: dict[int, T] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [child for child in node.children if id(child) not in values]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if id(node) not in values:
            values[id(node)] = combine(node, [values[id(child)] for child in node.children])
    return values[id(root)]


# -- Pickling: a flat list in post-order, because nested pickles end where Python's stack ends.


def _flatten(root: Expression) -> tuple[tuple[Any, ...], ...]:
    nodes: list[tuple[Any, ...]] = []

    def place(node: Expression, below: list[int]) -> int:
        nodes.append((type(node), tuple(below), node.own))
        return len(nodes) - 1

    fold_shared(root, place)
    return tuple(nodes)


def _unflatten(nodes: tuple[tuple[Any, ...], ...]) -> Expression:
    made: list[Expression] = []
    for kind, below, own in nodes:
        made.append(kind.made(tuple(made[index] for index in below), own))
    return made[-1]
