"""The A-Tree in plain Python: what the tables say, what must hold of them, and the three filters as their source tells them.

Expressions are nested tuples: `("and", 0, ("or", 1, 2))` over the predicates 0, 1 and 2, `("at_least", 2, 0, 1, 2)`,
`("not", 0)`, True and False.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from tamis_lab.matching.atree.graph import Programs, SharedGraph, kernels

KINDS = {"and": kernels.AND, "or": kernels.OR, "xor": kernels.XOR, "at_least": kernels.AT_LEAST, "not": kernels.NOT}
NAMES = {code: name for name, code in KINDS.items()} | {kernels.ALWAYS: "always"}


def programs(expressions) -> Programs:
    """Write expressions as instructions, word by word as they stand."""
    code, starts, roots = [], [0], []
    for expression in expressions:
        made = 0

        def written(part):
            nonlocal made
            if isinstance(part, bool):
                # TRUE is at_least(0, ...), and there is no other way to say a constant inside an expression
                code.extend([kernels.AT_LEAST, 0 if part else 2, 1, 0])
            elif isinstance(part, int):
                return part
            else:
                kind, *operands = part
                least = operands.pop(0) if kind == "at_least" else 0
                refs = [written(operand) for operand in operands]
                code.extend([KINDS[kind], least, len(refs), *refs])
            made += 1
            return -made

        if isinstance(expression, bool):
            roots.append(kernels.EVER if expression else kernels.NEVER)
        else:
            roots.append(written(expression))
        starts.append(len(code))
    return Programs(np.array(code, np.int32), np.array(starts, np.int64), np.array(roots, np.int32))


def insert(graph: SharedGraph, expressions: dict, predicate_count: int = 32) -> None:
    """Insert expressions under their handles."""
    graph.insert(list(expressions), programs(expressions.values()), np.arange(predicate_count, dtype=np.uint32))


def holds(expression, true: frozenset[int]) -> bool:
    """Evaluate an expression, given the predicates that are true."""
    if isinstance(expression, bool):
        return expression
    if isinstance(expression, int):
        return expression in true
    kind, *operands = expression
    least = operands.pop(0) if kind == "at_least" else 0
    count = sum(holds(operand, true) for operand in operands)
    return {
        "and": count == len(operands),
        "or": count > 0,
        "xor": count % 2 == 1,
        "at_least": count >= least,
        "not": count == 0,
    }[kind]


# -- What the tables say


@dataclass
class Node:
    kind: str
    children: list[int]
    parents: list[int] = field(default_factory=list)
    holders: list[int] = field(default_factory=list)
    level: int = 1
    need: int = 1
    uses: int = 0
    base: int = 0
    default: bool = False
    band: int = 0


def nodes_of(graph: SharedGraph) -> dict[int, Node]:
    """Read all nodes: inner ones from 0 on, the leaf of predicate p is -1 - p."""
    tables = graph.tables
    found = {}
    for number, books in enumerate(tables.leaf_books.tolist()):
        if books[kernels.USES]:
            found[-1 - number] = Node("leaf", [])
    for node in range(int(tables.meta[kernels.ROWS])):
        row = tables.inner[node].tolist()
        if row[kernels.KIND] == kernels.GONE:
            continue
        start = row[kernels.CHILD_START]
        children = tables.children[start : start + row[kernels.CHILD_COUNT], 0].tolist()
        found[node] = Node(
            NAMES[row[kernels.KIND]],
            children if row[kernels.KIND] != kernels.ALWAYS else [],
            level=row[kernels.LEVEL],
            need=row[kernels.NEED],
            base=row[kernels.BASE],
            default=bool(row[kernels.DEFAULT]),
        )
    for ref, node in found.items():
        rises = (tables.rises[ref] if ref >= 0 else tables.leaves[-1 - ref]).tolist()
        books = (tables.books[ref] if ref >= 0 else tables.leaf_books[-1 - ref]).tolist()
        start, count = rises[kernels.PARENT_START], rises[kernels.PARENT_COUNT]
        node.parents = [start] if count < 0 else tables.parents[start : start + count, 0].tolist()
        start = rises[kernels.HOLDER_START]
        node.holders = tables.holders[start : start + rises[kernels.HOLDER_COUNT], 0].tolist()
        node.uses = books[kernels.USES]
        if len(tables.bands):
            node.band = int(tables.bands[ref] if ref >= 0 else tables.leaf_bands[-1 - ref])
    return found


def below(nodes: dict[int, Node], root: int) -> set[int]:
    """Return a node and all that it is made of."""
    found, stack = set(), [root]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += nodes[node].children
    return found


def expression_of(nodes: dict[int, Node], root: int):
    """Write a node as an expression."""
    node = nodes[root]
    if root < 0:
        return -1 - root
    if node.kind == "always":
        return True
    operands = [expression_of(nodes, child) for child in node.children]
    return (node.kind, node.need, *operands) if node.kind == "at_least" else (node.kind, *operands)


# -- What must hold


def check(graph: SharedGraph, expected: dict) -> None:
    """See that the graph holds just these expressions, and that all its tables agree with one another."""
    nodes = nodes_of(graph)
    tables = graph.tables
    inner = {ref: node for ref, node in nodes.items() if ref >= 0}
    assert graph.subscription_count == len(expected)
    assert graph.inner_count == len(inner)
    assert graph.leaf_count == len(nodes) - len(inner)
    assert graph.edge_count == sum(len(node.children) for node in nodes.values())
    # Every edge stands on both sides, as often as it is there.
    edges = sorted((ref, child) for ref, node in nodes.items() for child in node.children)
    assert edges == sorted((parent, ref) for ref, node in nodes.items() for parent in node.parents)
    # Levels: the formula, Theorem 1 (no level is empty), and the counts.
    for node in inner.values():
        assert node.level == 1 + max([nodes[child].level for child in node.children], default=0)
    levels = [sum(node.level == level for node in nodes.values()) for level in range(1, len(graph.level_counts) + 1)]
    assert graph.level_counts.tolist() == levels
    assert 0 not in levels
    # Theorem 2 in its exact form: a node's uses are the subscriptions that it is a part of.
    roots = {handle: int(tables.subscriptions[handle, 0]) for handle in expected}
    parts = {handle: below(nodes, root) for handle, root in roots.items() if root != kernels.NEVER}
    for ref, node in nodes.items():
        assert node.uses == sum(ref in found for found in parts.values()) > 0
        for child in node.children:
            assert nodes[child].uses >= node.uses
    # Theorem 3: operations have operands; AND, OR and XOR two or more different ones, and none of their own kind twice.
    seen = set()
    for ref, node in inner.items():
        assert len(node.children) == 1 if node.kind == "not" else node.kind == "always" or len(node.children) > 1
        if node.kind in ("and", "or", "xor"):
            assert len(set(node.children)) == len(node.children) <= kernels.WIDEST
        key = (node.kind, node.need if node.kind == "at_least" else 0, tuple(sorted(operands(nodes, ref))))
        assert key not in seen, "equal expressions are one node"
        seen.add(key)
        values = [nodes[child].default for child in node.children]
        assert node.base == sum(values)
        assert node.default == holds(expression_of(nodes, ref), frozenset())
    # Who is reported where.
    holders = sorted((handle, ref) for ref, node in nodes.items() for handle in node.holders)
    assert holders == sorted((handle, root) for handle, root in roots.items() if root != kernels.NEVER)
    standing = {ref for ref, node in inner.items() if node.default and node.holders}
    assert sorted(graph.standing.tolist()) == sorted(standing)
    # The hash table has each operation once, and finds it.
    assert sorted(tables.table[tables.table >= 0].tolist()) == sorted(
        ref for ref, node in inner.items() if node.kind != "always"
    )
    _check_blocks(graph, nodes)


def operands(nodes: dict[int, Node], ref: int) -> list[int]:
    """Return the operands of a node, with those of operands of its own kind in their place."""
    node = nodes[ref]
    found = []
    for child in node.children:
        is_same = node.kind in ("and", "or", "xor") and nodes[child].kind == node.kind
        found += operands(nodes, child) if is_same else [child]
    return found


def _check_blocks(graph: SharedGraph, nodes: dict[int, Node]) -> None:
    """No two blocks of a pool overlap, and every row below the top is in a block, used or free."""
    tables = graph.tables
    blocks: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    for ref in nodes:
        rises = (tables.rises[ref] if ref >= 0 else tables.leaves[-1 - ref]).tolist()
        books = (tables.books[ref] if ref >= 0 else tables.leaf_books[-1 - ref]).tolist()
        for which, start, room in ((1, rises[0], books[0]), (2, rises[2], books[1])):
            if room >= 0:
                blocks[which].append((start, kernels.room_of(room)))
        if ref >= 0 and nodes[ref].children:
            row = tables.inner[ref].tolist()
            room = kernels.room_of(kernels.class_of(row[kernels.CHILD_COUNT]))
            blocks[0].append((row[kernels.CHILD_START], room))
    for which, (pool, top) in enumerate(
        (
            (tables.children, kernels.CHILD_TOP),
            (tables.parents, kernels.PARENT_TOP),
            (tables.holders, kernels.HOLDER_TOP),
        )
    ):
        for size_class, head in enumerate(tables.heads[which].tolist()):
            while head >= 0:
                blocks[which].append((head, kernels.room_of(size_class)))
                head = int(pool[head, 0])
        at = 0
        for start, room in sorted(blocks[which]):
            assert start == at, "blocks lie one behind the other"
            at = start + room
        assert at == tables.meta[top]


# -- The filters


@dataclass
class Trace:
    """What a filter did."""

    found: list[int] = field(default_factory=list)
    touches: list[int] = field(default_factory=list)
    """Nodes that were told of an operand, as often as they were."""
    queues: dict[int, list[int]] = field(default_factory=dict)
    true: set[int] = field(default_factory=set)

    @property
    def pushes(self) -> int:
        """How many inner nodes were told of an operand at all."""
        return len(set(self.touches))


def by_paths(nodes: dict[int, Node], numbers) -> Trace:
    """Algorithms 2 and 3: recursive, and with a count where the source, whose nodes are binary, has two cases."""
    trace = Trace()
    counts: dict[int, int] = {}

    def follow(ref):
        trace.true.add(ref)
        trace.found.extend(nodes[ref].holders)
        for parent in nodes[ref].parents:
            trace.touches.append(parent)
            counts[parent] = counts.get(parent, 0) + 1
            if counts[parent] == nodes[parent].need:
                follow(parent)

    for number in numbers:
        if -1 - number in nodes:
            follow(-1 - number)
    trace.found.extend(handle for node in nodes.values() if node.kind == "always" for handle in node.holders)
    return trace


def by_levels(nodes: dict[int, Node], numbers, *, is_general: bool, has_defaults: bool = True) -> Trace:
    """Algorithm 1, with queues for each level; without defaults it is as published, and wrong where NOT is."""
    trace = Trace()
    highest = max((node.level for node in nodes.values()), default=0)
    queues = {level: deque() for level in range(1, highest + 1)}
    counts: dict[int, int] = {}
    turned = set()
    queues.setdefault(1, deque()).extend(-1 - number for number in numbers if -1 - number in nodes)
    for level in range(1, highest + 1):
        trace.queues[level] = []
        while queues[level]:
            ref = queues[level].popleft()
            trace.queues[level].append(ref)
            node = nodes[ref]
            default = node.default and has_defaults
            is_true = ref < 0 or _value(node, counts[ref])
            if is_true:
                trace.true.add(ref)
                if not default:
                    trace.found.extend(node.holders)
            elif default:
                turned.add(ref)
            if is_true == default and not is_general:
                continue
            for parent in node.parents:
                if parent not in counts:
                    counts[parent] = nodes[parent].base if has_defaults else 0
                    queues[nodes[parent].level].append(parent)
                counts[parent] += is_true - default
                trace.touches.append(parent)
    if has_defaults:
        standing = (node for ref, node in nodes.items() if node.default and ref not in turned)
        trace.found.extend(handle for node in standing for handle in node.holders)
    return trace


def _value(node: Node, count: int) -> bool:
    if node.need > 0:
        return count >= node.need
    return count % 2 == 1 if node.need == kernels.ODD else count == 0
