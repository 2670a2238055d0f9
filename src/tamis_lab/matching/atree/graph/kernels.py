"""The compiled loops by which the graph grows and shrinks.

The graph is a handful of tables of whole numbers (`Graph`). A node is known by a number: inner nodes from 0 on, and
the leaf of predicate p is -1 - p. `children`, `parents` and `holders` are pools of blocks: a block has room for 1, 2,
3, 4, 6, 8, 12, ... rows, and a free one is in the list of its size, with the next one written in its first row. An
edge stands in both pools, and either entry knows the place of the other, so that it is removed without a search
however many parents a child has. Most nodes have just one parent, which needs no block.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

GONE, AND, OR, XOR, AT_LEAST, NOT, ALWAYS = range(7)
"""What an inner node is. GONE is none: its row waits to be used again."""

KIND, NEED, LEVEL, BASE, DEFAULT, CHILD_START, CHILD_COUNT, STANDING = range(8)
"""The columns of `inner`.

NEED      a node is true if so many operands are; ODD and NONE stand for the two kinds that are not so simple
LEVEL     one more than the highest of its operands; leaves are on level 1
BASE      how many operands are true when no predicate is; DEFAULT is whether the node itself is
STANDING  the place among `standing`, -1 for none; the next free row of one that is GONE
"""
ODD, NONE = 0, -1

PARENT_START, PARENT_COUNT, HOLDER_START, HOLDER_COUNT = range(4)
"""The columns of `rises` and `leaves`: where a node's truth goes.

PARENT_COUNT  how many parents are in the block; if there is just one and no block, PARENT_START is the parent, and
              PARENT_COUNT the negative of what it needs, but at least of 1
"""
PARENT_ROOM, HOLDER_ROOM, USES, MARK = range(4)
"""The columns of `books` and `leaf_books`, which no event looks at.

..._ROOM      the size class of a block, -1 without one
USES          how many subscriptions the node is a part of
MARK          the latest walk that came along
"""

ROWS, FREE, LIVE, EDGES, ENTRIES, CHILD_TOP, PARENT_TOP, HOLDER_TOP, STANDING_COUNT, LEVELS, WALK, ALWAYS_AT = range(12)
NEXT, PHASE, CREATED, LINKED, EDGE, ROOT = range(12, 18)
IS_BINARY, IS_SORTED = range(18, 20)
META = 20
"""The counters in `meta`.

ROWS       of `inner` that were ever used; FREE is the first that is free again, LIVE how many are nodes
ENTRIES    nodes in `table`
..._TOP    where the used part of a pool ends
LEVELS     the highest level
WALK       the latest walk
ALWAYS_AT  the node of TRUE, -1 for none
NEXT ...   where an interrupted insertion goes on
IS_BINARY  whether an AND of an AND stays what it is, as in the published tree (`published`)
IS_SORTED  whether the parents of a node are kept in the order of their numbers
"""

OF_CHILDREN, OF_PARENTS, OF_HOLDERS = range(3)
CLASSES = 64
DONE, NO_ROWS, NO_CHILDREN, NO_PARENTS, NO_HOLDERS = range(5)
"""Why an insertion stops: it is done, or a table is full."""
BUILDING, LINKING, HOLDING = range(3)
NEVER, EVER = -(1 << 31), -(1 << 31) + 1
"""What FALSE and TRUE are where a node is expected."""

WIDEST = 2048
"""A wider AND, OR or XOR becomes several nodes."""
SEARCHED = 64
"""Up to so many operands are searched for parts that exist, or that were met before."""

Graph = namedtuple(
    "Graph",
    "inner rises books leaves leaf_books keys children parents parent_edges holders subscriptions table seen "
    "level_counts standing band_uses leaf_band_uses bands leaf_bands heads meta",
)
"""The tables.

inner          int32[:, 8]   inner nodes: what they are
rises          int32[:, 4]   inner nodes: where their truth goes
books          int32[:, 4]   inner nodes: what else must be known of them
leaves         int32[:, 4]   as `rises`, of leaves by predicate; `leaf_books` as `books`
keys           uint64[:]     what an inner node is found by: a sum over its operands
children       int32[:, 2]   edges by parent: the child, and the place of the edge in the child's block of `parents`
parents        int32[:, 2]   edges by child: the parent, and its NEED, so that a touch reads one line less
parent_edges   int32[:]      beside `parents`: where the edge stands in `children`
holders        int64[:, 1]   the handles of the subscriptions whose expression is this node
subscriptions  int32[:, 3]   by handle: its node or NEVER, its place in the node's block of `holders`, its band
table          int32[:]      from keys to inner nodes, by open addressing
seen           uint64[:]     the keys of parts that were met before, as many as there is room for
level_counts   int64[:]      how many nodes there are on each level
standing       int32[:]      nodes that hold subscriptions, and are true when no predicate is
band_uses      int32[:, :]   USES by band of priority, without rows where all subscriptions are in one band
bands          uint8[:]      the highest band of a node's subscriptions, as `band_uses`; both also for leaves
heads          int64[3, :]   the free blocks of the pools, by size class
meta           int64[:]      counters
"""

Work = namedtuple(
    "Work",
    "created results operands pieces by_age sums costs begins parts other_begins other_parts sorted spare stack "
    "visited",
)
"""What an insertion writes on: int64, but for `sums`, which is uint64.

They have a place for each word of an expression's code, and `visited` has two.
"""


# -- Blocks


@njit(nogil=True, cache=True)
def room_of(size_class):
    """Return how many rows the blocks of a class have: 1, 2, 3, 4, 6, 8, 12, 16, ..."""
    if size_class == 0:
        return np.int64(1)
    if size_class & 1:
        return np.int64(1) << ((size_class + 1) >> 1)
    return np.int64(3) << ((size_class >> 1) - 1)


@njit(nogil=True, cache=True)
def class_of(count):
    """Return the class of the smallest blocks with so much room."""
    size_class = np.int64(0)
    while room_of(size_class) < count:
        size_class += 1
    return size_class


@njit(nogil=True, cache=True)
def taken_block(pool, which, size_class, heads, meta):
    """Take a free block of a class, or a new one; -1 if the pool is full."""
    start = heads[which, size_class]
    # A free block holds the next free one of its class in its first place: the lists take no room of their own.
    if start >= 0:
        heads[which, size_class] = pool[start, 0]
        return start
    start = meta[CHILD_TOP + which]
    if start + room_of(size_class) > pool.shape[0]:
        return np.int64(-1)
    meta[CHILD_TOP + which] = start + room_of(size_class)
    return start


@njit(nogil=True, cache=True)
def give_block(pool, which, start, size_class, heads):
    """Put a block into the list of its class."""
    pool[start, 0] = heads[which, size_class]
    heads[which, size_class] = start


@njit(nogil=True, cache=True)
def sort_first(values, count):
    """Sort the first so many values in place (Shell's sort; numba's own takes seconds to compile at every use)."""
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for index in range(gap, count):
            value = values[index]
            place = index
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3


# -- The table of keys


@njit(nogil=True, cache=True)
def mixed(number):
    """Return a number that looks random (splitmix64)."""
    x = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(nogil=True, cache=True)
def key_base(kind, least):
    """Return what the key of a node starts from; the mixed numbers of its operands are added."""
    return mixed((least << 8) + kind + (np.int64(1) << 40))


@njit(nogil=True, cache=True)
def key_of(kind, least, operands, begin, end):
    """Return the key of a node over operands: a sum, so that their order does not matter."""
    key = key_base(kind, least)
    for index in range(begin, end):
        key += mixed(operands[index])
    return key


@njit(nogil=True, cache=True)
def operands_of(node, g, stack, operands, begin):
    """Write the operands of an inner node, with those of operands of its own kind in their place; return how many.

    Where there is not enough room for them it is one more than there is room for. In a binary graph they stay as they
    are.
    """
    inner, children = g.inner, g.children
    kind = inner[node, KIND]
    is_open = kind <= XOR and g.meta[IS_BINARY] == 0
    count = np.int64(begin)
    stack[0] = node
    top = 1
    while top:
        top -= 1
        each = stack[top]
        start = inner[each, CHILD_START]
        for edge in range(start, start + inner[each, CHILD_COUNT]):
            child = children[edge, 0]
            if count == operands.size or top == stack.size:
                return np.int64(operands.size + 1 - begin)
            # AND of AND is one AND: who looks for a node must find it however it was cut into parts.
            if is_open and child >= 0 and inner[child, KIND] == kind:
                stack[top] = child
                top += 1
            else:
                operands[count] = child
                count += 1
    return count - begin


@njit(nogil=True, cache=True)
def has_operands(node, operands, begin, end, g, w):
    """Are these just the operands of a node, in whatever order?"""
    count = operands_of(node, g, w.stack, w.spare, np.int64(0))
    if count != end - begin:
        return False
    for index in range(count):
        w.sorted[index] = operands[begin + index]
    # Keys are sums, so they are equal in any order, and now and then by chance; operands are compared to be sure.
    sort_first(w.spare, count)
    sort_first(w.sorted, count)
    differences = 0
    for index in range(count):
        differences += w.spare[index] != w.sorted[index]
    return differences == 0


@njit(nogil=True, cache=True)
def node_of(kind, least, key, operands, begin, end, g, w):
    """Return the node of this kind over just these operands, -1 if there is none."""
    mask = np.uint64(g.table.size - 1)
    place = key & mask
    while g.table[place] >= 0:
        node = np.int64(g.table[place])
        if (
            g.keys[node] == key
            and g.inner[node, KIND] == kind
            and (kind != AT_LEAST or g.inner[node, NEED] == least)
            and has_operands(node, operands, begin, end, g, w)
        ):
            return node
        place = (place + np.uint64(1)) & mask
    return np.int64(-1)


@njit(nogil=True, cache=True)
def enter(node, keys, table, meta):
    """Put a node into the table."""
    mask = np.uint64(table.size - 1)
    place = keys[node] & mask
    while table[place] >= 0:
        place = (place + np.uint64(1)) & mask
    table[place] = node
    meta[ENTRIES] += 1


@njit(nogil=True, cache=True)
def leave(node, keys, table, meta):
    """Take a node out of the table, and move up what would not be found any more."""
    mask = np.uint64(table.size - 1)
    one = np.uint64(1)
    hole = keys[node] & mask
    while table[hole] != node:
        hole = (hole + one) & mask
    place = (hole + one) & mask
    while table[place] >= 0:
        home = keys[table[place]] & mask
        # It may move up only if the hole lies between its home and its place: otherwise a search from its home would
        # not pass there.
        if ((place - home) & mask) >= ((place - hole) & mask):
            table[hole] = table[place]
            hole = place
        place = (place + one) & mask
    table[hole] = -1
    meta[ENTRIES] -= 1


@njit(nogil=True, cache=True)
def enter_all(inner, keys, table, meta):
    """Fill an empty table with every node that belongs into it."""
    meta[ENTRIES] = 0
    for node in range(meta[ROWS]):
        if AND <= inner[node, KIND] <= NOT:
            enter(node, keys, table, meta)


# -- Nodes


@njit(nogil=True, cache=True)
def new_node(kind, need, level, g):
    """Take a row for a node without edges."""
    meta = g.meta
    node = meta[FREE]
    if node >= 0:
        meta[FREE] = g.inner[node, STANDING]
    else:
        node = meta[ROWS]
        meta[ROWS] += 1
    for column in range(8):
        g.inner[node, column] = 0
    for column in range(4):
        g.rises[node, column] = 0
        g.books[node, column] = 0
    g.inner[node, KIND] = kind
    g.inner[node, NEED] = need
    g.inner[node, LEVEL] = level
    g.inner[node, STANDING] = -1
    g.books[node, PARENT_ROOM] = -1
    g.books[node, HOLDER_ROOM] = -1
    if kind == ALWAYS:
        g.inner[node, DEFAULT] = 1
    g.level_counts[level] += 1
    meta[LEVELS] = max(meta[LEVELS], level)
    meta[LIVE] += 1
    return node


@njit(nogil=True, cache=True)
def made_node(kind, least, key, operands, begin, end, g, w):
    """Make a node over operands. Its edges are linked later, because that may take more room than there is."""
    count = end - begin
    level, base = np.int64(1), np.int64(0)
    for index in range(begin, end):
        child = operands[index]
        if child >= 0:
            level = max(level, np.int64(g.inner[child, LEVEL]))
            base += g.inner[child, DEFAULT]
    if kind == AND:
        need = count
    elif kind == OR:
        need = np.int64(1)
    elif kind == AT_LEAST:
        need = least
    else:
        need = np.int64(ODD if kind == XOR else NONE)
    node = new_node(kind, need, level + 1, g)
    if need > 0:
        is_true = base >= need
    else:
        is_true = (base & 1) == 1 if need == ODD else base == 0
    g.inner[node, BASE] = base
    g.inner[node, DEFAULT] = 1 if is_true else 0
    start = taken_block(g.children, OF_CHILDREN, class_of(count), g.heads, g.meta)
    g.inner[node, CHILD_START] = start
    g.inner[node, CHILD_COUNT] = count
    for index in range(count):
        g.children[start + index, 0] = operands[begin + index]
    g.meta[EDGES] += count
    g.keys[node] = key
    enter(node, g.keys, g.table, g.meta)
    w.created[g.meta[CREATED]] = node
    g.meta[CREATED] += 1
    return node


# -- One operation: the node that exists, or parts that exist, or parts that were met before


@njit(nogil=True, cache=True)
def seen_place(key, seen):
    """Return where the key of a part is remembered; a later one may have taken its place."""
    return (key >> np.uint64(32)) & np.uint64(seen.size - 1)


@njit(nogil=True, cache=True)
def remember(kind, operands, count, seen):
    """Note down every part of a sequence of operands: should one come again, it gets a node."""
    for begin in range(count - 1):
        key = key_base(kind, np.int64(0)) + mixed(operands[begin])
        # The keys of all parts in one pass, because a key is a sum: the next part adds one operand.
        for end in range(begin + 2, count + 1):
            key += mixed(operands[end - 1])
            if end - begin < count:
                seen[seen_place(key, seen)] = key


@njit(nogil=True, cache=True)
def partitioned(kind, operands, count, begins, parts, g, w):
    """Cut a sequence of operands into as few parts as can be; return their price.

    A part is a single operand, a node that exists, or one that was met before and now is worth a node. `costs[j]` is
    the price of the first j operands, `begins[j]` where the last of their parts begins, and `parts[j]` the node of that
    part, NEVER where it is yet to be made. A part costs 1024, one yet to be made a bit more.
    """
    base = key_base(kind, np.int64(0))
    w.sums[0] = base
    w.costs[0] = 0
    earliest = np.int64(0)
    for end in range(1, count + 1):
        last = operands[end - 1]
        w.sums[end] = w.sums[end - 1] + mixed(last)
        w.costs[end] = w.costs[end - 1] + 1024
        begins[end] = end - 1
        parts[end] = last
        # The whole search is quadratic; this cuts it down to operands that are part of something already.
        rises = g.rises[last] if last >= 0 else g.leaves[-1 - last]
        if rises[PARENT_COUNT] == 0:  # part of nothing so far, and so is what it is a part of
            earliest = np.int64(end)
        for begin in range(end - 2, earliest - 1, -1):
            price = w.costs[begin] + 1024
            if price >= w.costs[end] or end - begin == count:
                continue
            key = base + (w.sums[end] - w.sums[begin])
            node = node_of(kind, np.int64(0), key, operands, begin, end, g, w)
            if node < 0:
                # A node that is yet to be made costs a little more than one that exists, so of equal cuts the one is
                # taken that reuses more.
                price += 1
                if price >= w.costs[end] or g.seen[seen_place(key, g.seen)] != key:
                    continue
                node = np.int64(NEVER)
            w.costs[end] = price
            begins[end] = begin
            parts[end] = node
    return w.costs[count]


@njit(nogil=True, cache=True)
def cut_well(kind, operands, count, g, w):
    """Cut operands as they came, or in order of age, whichever makes fewer parts; return the sequence that was cut."""
    for index in range(count):
        w.by_age[index] = operands[index]
    sort_first(w.by_age, count)
    order, begins, parts = operands, w.begins, w.parts
    least = np.int64(0)
    for attempt in range(2):
        price = partitioned(kind, order, count, begins, parts, g, w)
        if attempt == 0:
            least = price
            order, begins, parts = w.by_age, w.other_begins, w.other_parts
            # Two parts are the least that there can be, short of a node that exists.
            if price <= 2 * 1024:
                break
        elif price < least:
            for end in range(1, count + 1):
                w.begins[end] = begins[end]
                w.parts[end] = parts[end]
            least = np.int64(0)
    remember(kind, operands, count, g.seen)
    return w.by_age if least == 0 else operands


@njit(nogil=True, cache=True)
def cut_evenly(kind, operands, count, g, w):
    """Cut more operands than are searched into parts of a width that a node may have."""
    end = count
    while end > 0:
        begin = (end - 1) // WIDEST * WIDEST if count > WIDEST else end - 1
        w.begins[end] = begin
        if end - begin == 1:
            w.parts[end] = operands[begin]
        else:
            key = key_of(kind, np.int64(0), operands, begin, end)
            node = node_of(kind, np.int64(0), key, operands, begin, end, g, w)
            w.parts[end] = node if node >= 0 else np.int64(NEVER)
        end = begin


@njit(nogil=True, cache=True)
def node_over(kind, least, operands, count, g, w):
    """Return the node of a kind over operands, in the order in which they came; made of parts if need be."""
    key = key_of(kind, least, operands, np.int64(0), count)
    node = node_of(kind, least, key, operands, np.int64(0), count, g, w)
    if node >= 0:
        return node
    order = operands
    if count == 2 or kind in (NOT, AT_LEAST):
        for index in range(count):
            w.pieces[index] = operands[index]
        written = count
    else:
        if count > SEARCHED:
            cut_evenly(kind, operands, count, g, w)
        else:
            order = cut_well(kind, operands, count, g, w)
        written = np.int64(0)
        end = count
        while end > 0:
            begin = w.begins[end]
            node = w.parts[end]
            if node == NEVER:
                node = made_node(kind, least, key_of(kind, least, order, begin, end), order, begin, end, g, w)
            w.pieces[written] = node
            written += 1
            end = begin
        for index in range(written >> 1):
            other = written - 1 - index
            w.pieces[index], w.pieces[other] = w.pieces[other], w.pieces[index]
    return made_node(kind, least, key, w.pieces, np.int64(0), written, g, w)


# -- One expression


@njit(nogil=True, cache=True)
def gather(kind, least, refs, begin, end, numbers, g, w):
    """Write down the operands of an instruction, and return what it comes to.

    That is its kind, how many operands there are (or the constant that is its result), its least number of true ones,
    and whether the result is turned around. Constants go: TRUE turns the result of XOR around. An operand of the same
    kind is replaced by its operands. AND and OR take an operand once, of XOR two equal ones take each other away, and
    `at_least(1, ...)` is OR.
    """
    ever = np.int64(0)
    count = np.int64(0)
    for index in range(begin, end):
        ref = np.int64(refs[index])
        node = -1 - np.int64(numbers[ref]) if ref >= 0 else w.results[-1 - ref]
        if node == EVER:
            ever += 1
        elif node != NEVER:
            w.pieces[count] = node
            count += 1
    has_never = ever + count < end - begin
    if kind == AT_LEAST:
        least -= ever  # what is always true is among those that are
        if least <= 0 or least > count:
            return kind, np.int64(EVER if least <= 0 else NEVER), least, False
        kind = np.int64(OR) if least == 1 else np.int64(AND) if least == count else kind
    elif (kind == OR and ever > 0) or (kind == AND and has_never) or (kind == NOT and count == 0):
        is_true = kind == OR or (kind == NOT and has_never)
        return kind, np.int64(EVER if is_true else NEVER), least, False
    # AND, OR and XOR are associative, so the operands of an operand of the same kind are as good as its own; of NOT and
    # AT_LEAST they are not.
    written = np.int64(0)
    is_open = kind <= XOR and g.meta[IS_BINARY] == 0
    for index in range(count):
        node = w.pieces[index]
        if is_open and node >= 0 and g.inner[node, KIND] == kind:
            written += operands_of(node, g, w.stack, w.operands, written)
        else:
            w.operands[written] = node
            written += 1
    # In one order, so that equal expressions are found to be one node; of AT_LEAST an operand that stands twice counts
    # twice, and stays.
    if kind == AT_LEAST:
        sort_first(w.operands, written)
    elif kind != NOT:
        written = distinct(kind, written, g, w)
        if written == 0:
            written = np.int64(EVER if kind == AND else NEVER)
    return kind, written, least if kind == AT_LEAST else np.int64(0), kind == XOR and (ever & 1) == 1


@njit(nogil=True, cache=True)
def next_walk(g):
    """Return the mark of a new walk; once they are used up, forget all marks."""
    if g.meta[WALK] == (1 << 31) - 1:
        g.books[:, MARK] = 0
        g.leaf_books[:, MARK] = 0
        g.meta[WALK] = 0
    g.meta[WALK] += 1
    return g.meta[WALK]


@njit(nogil=True, cache=True)
def distinct(kind, count, g, w):
    """Keep each operand once, in order; of XOR those that occur an odd number of times."""
    walk = next_walk(g)
    written = np.int64(0)
    for index in range(count):
        node = w.operands[index]
        books = g.books if node >= 0 else g.leaf_books
        row = node if node >= 0 else -1 - node
        if books[row, MARK] != walk:
            books[row, MARK] = walk
            w.operands[written] = node
            written += 1
        elif kind == XOR:
            books[row, MARK] = 0
            place = np.int64(0)
            while w.operands[place] != node:
                place += 1
            written -= 1
            for later in range(place, written):
                w.operands[later] = w.operands[later + 1]
    return written


@njit(nogil=True, cache=True)
def built(code, begin, end, root, numbers, g, w):
    """Build the nodes of one expression, and return its root.

    The code is a sequence of instructions: a kind, a least number of true operands, the number of operands, and the
    operands. One that is not negative is the leaf of a predicate among `numbers`, -1 the result of the first
    instruction, -2 that of the second, ...
    """
    instruction = 0
    place = begin
    while place < end:
        first = place + 3
        place = first + code[place + 2]
        kind, size, least, is_turned = gather(
            np.int64(code[first - 3]), np.int64(code[first - 2]), code, first, place, numbers, g, w
        )
        # A second turn only if the result is to be turned around (XOR with TRUE): then NOT is put on top of it.
        while True:
            if size < 0:  # a constant
                result = size
            elif size == 1 and kind <= XOR:
                result = w.operands[0]
            elif kind == NOT and w.operands[0] >= 0 and g.inner[w.operands[0], KIND] == NOT:
                # NOT of NOT is what is below both.
                result = np.int64(g.children[g.inner[w.operands[0], CHILD_START], 0])
            else:
                result = node_over(kind, least, w.operands, size, g, w)
            if not is_turned:
                break
            is_turned = False
            if result in (NEVER, EVER):
                size = np.int64(NEVER) + np.int64(EVER) - result
            else:
                kind, size = np.int64(NOT), np.int64(1)
                w.operands[0] = result
        w.results[instruction] = result
        instruction += 1
    if root in (NEVER, EVER):
        return np.int64(root)
    return -1 - np.int64(numbers[root]) if root >= 0 else w.results[-1 - root]


# -- Insertion


@njit(nogil=True, cache=True)
def link(node, edge, g):
    """Enter an edge of a node with its child; False if there is no room."""
    child = np.int64(g.children[edge, 0])
    table = g.rises if child >= 0 else g.leaves
    books = g.books if child >= 0 else g.leaf_books
    row = child if child >= 0 else -1 - child
    count, room, start = table[row, PARENT_COUNT], books[row, PARENT_ROOM], table[row, PARENT_START]
    # Most nodes have one parent. It stands where a block would start, as a negative count says, and needs no block.
    if count == 0 and room < 0:
        table[row, PARENT_START] = node
        table[row, PARENT_COUNT] = -max(1, g.inner[node, NEED])
        g.children[edge, 1] = 0
        return True
    if count < 0 or count == room_of(np.int64(room)):
        wider = taken_block(g.parents, OF_PARENTS, room + 2 if count < 0 else room + 1, g.heads, g.meta)
        if wider < 0:
            return False
        if count < 0:  # so far there was one, without a block
            other = np.int64(g.inner[start, CHILD_START])
            while g.children[other, 0] != child or other == edge:
                other += 1
            g.parents[wider, 0] = start
            g.parents[wider, 1] = g.inner[start, NEED]
            g.parent_edges[wider] = other
            count = 1
            room += 1
        else:
            for index in range(count):
                g.parents[wider + index, 0] = g.parents[start + index, 0]
                g.parents[wider + index, 1] = g.parents[start + index, 1]
                g.parent_edges[wider + index] = g.parent_edges[start + index]
            give_block(g.parents, OF_PARENTS, start, room, g.heads)
        start = wider
        table[row, PARENT_START] = start
        books[row, PARENT_ROOM] = room + 1
    g.parents[start + count, 0] = node
    g.parents[start + count, 1] = g.inner[node, NEED]
    g.parent_edges[start + count] = edge
    g.children[edge, 1] = count
    table[row, PARENT_COUNT] = count + 1
    if g.meta[IS_SORTED]:
        # A row that was free before may have a lower number than the parents that are there.
        place = start + count
        while place > start and g.parents[place - 1, 0] > g.parents[place, 0]:
            exchange_parents(place, start, g)
            place -= 1
    return True


@njit(nogil=True, cache=True)
def exchange_parents(place, start, g):
    """Let an entry of the block that begins at `start` change places with the one before it."""
    for column in range(2):
        value = g.parents[place - 1, column]
        g.parents[place - 1, column] = g.parents[place, column]
        g.parents[place, column] = value
    edge = g.parent_edges[place - 1]
    g.parent_edges[place - 1] = g.parent_edges[place]
    g.parent_edges[place] = edge
    for moved in range(place - 1, place + 1):
        g.children[g.parent_edges[moved], 1] = moved - start


@njit(nogil=True, cache=True)
def unlink(edge, g):
    """Take an edge away from its child; the last one of the block takes its place."""
    child, place = np.int64(g.children[edge, 0]), g.children[edge, 1]
    table = g.rises if child >= 0 else g.leaves
    row = child if child >= 0 else -1 - child
    if table[row, PARENT_COUNT] < 0:
        table[row, PARENT_COUNT] = 0
        return
    start = table[row, PARENT_START]
    last = start + table[row, PARENT_COUNT] - 1
    if g.meta[IS_SORTED]:  # the entry goes to the end by steps, which keeps the others in order
        while start + place < last:
            place += 1
            exchange_parents(start + place, start, g)
    g.parents[start + place, 0] = g.parents[last, 0]
    g.parents[start + place, 1] = g.parents[last, 1]
    g.parent_edges[start + place] = g.parent_edges[last]
    g.children[g.parent_edges[last], 1] = place
    table[row, PARENT_COUNT] -= 1
    if table[row, PARENT_COUNT] == 0:
        books = g.books if child >= 0 else g.leaf_books
        give_block(g.parents, OF_PARENTS, start, books[row, PARENT_ROOM], g.heads)
        books[row, PARENT_ROOM] = -1


@njit(nogil=True, cache=True)
def hold(node, handle, g):
    """Write a subscription down with its node; False if there is no room."""
    table = g.rises if node >= 0 else g.leaves
    books = g.books if node >= 0 else g.leaf_books
    row = node if node >= 0 else -1 - node
    count, room, start = table[row, HOLDER_COUNT], books[row, HOLDER_ROOM], table[row, HOLDER_START]
    if room < 0 or count == room_of(np.int64(room)):
        wider = taken_block(g.holders, OF_HOLDERS, room + 1, g.heads, g.meta)
        if wider < 0:
            return False
        for index in range(count):
            g.holders[wider + index, 0] = g.holders[start + index, 0]
        if room >= 0:
            give_block(g.holders, OF_HOLDERS, start, room, g.heads)
        start = wider
        table[row, HOLDER_START] = start
        books[row, HOLDER_ROOM] = room + 1
    g.holders[start + count, 0] = handle
    table[row, HOLDER_COUNT] = count + 1
    g.subscriptions[handle, 0] = node
    g.subscriptions[handle, 1] = count
    g.subscriptions[handle, 2] = 0
    if count == 0 and node >= 0 and g.inner[node, DEFAULT]:
        g.inner[node, STANDING] = g.meta[STANDING_COUNT]
        g.standing[g.meta[STANDING_COUNT]] = node
        g.meta[STANDING_COUNT] += 1
    return True


@njit(nogil=True, cache=True)
def let_go(handle, g):
    """Forget a subscription; return the node that held it."""
    node, place = np.int64(g.subscriptions[handle, 0]), g.subscriptions[handle, 1]
    table = g.rises if node >= 0 else g.leaves
    row = node if node >= 0 else -1 - node
    last = table[row, HOLDER_COUNT] - 1
    moved = g.holders[table[row, HOLDER_START] + last, 0]
    g.holders[table[row, HOLDER_START] + place, 0] = moved
    g.subscriptions[moved, 1] = place
    g.subscriptions[handle, 0] = NEVER
    table[row, HOLDER_COUNT] = last
    if last == 0:
        books = g.books if node >= 0 else g.leaf_books
        give_block(g.holders, OF_HOLDERS, table[row, HOLDER_START], books[row, HOLDER_ROOM], g.heads)
        books[row, HOLDER_ROOM] = -1
        if node >= 0 and g.inner[node, STANDING] >= 0:
            g.meta[STANDING_COUNT] -= 1
            other = g.standing[g.meta[STANDING_COUNT]]
            g.standing[g.inner[node, STANDING]] = other
            g.inner[other, STANDING] = g.inner[node, STANDING]
            g.inner[node, STANDING] = -1
    return node


@njit(nogil=True, cache=True)
def count_uses(root, change, band, g, visited):
    """Add to the uses of every node of an expression, each once; write down which, and return how many."""
    walk = next_walk(g)
    is_banded = g.bands.size > 0
    visited[0] = root
    count, done = np.int64(1), np.int64(0)
    while done < count:
        node = visited[done]
        done += 1
        books = g.books if node >= 0 else g.leaf_books
        row = node if node >= 0 else -1 - node
        books[row, MARK] = walk
        books[row, USES] += change
        if is_banded:
            # A node is looked at in the highest band of priority that any expression uses it in.
            uses = g.band_uses if node >= 0 else g.leaf_band_uses
            bands = g.bands if node >= 0 else g.leaf_bands
            uses[row, band] += change
            highest = uses.shape[1] - 1
            while highest > 0 and uses[row, highest] == 0:
                highest -= 1
            bands[row] = highest
        if node < 0:
            if change > 0 and books[row, USES] == 1:
                g.level_counts[1] += 1
                g.meta[LEVELS] = max(g.meta[LEVELS], 1)
            elif change < 0 and books[row, USES] == 0:
                g.level_counts[1] -= 1
            continue
        start = g.inner[node, CHILD_START]
        for edge in range(start, start + g.inner[node, CHILD_COUNT]):
            child = np.int64(g.children[edge, 0])
            below = g.books if child >= 0 else g.leaf_books
            place = child if child >= 0 else -1 - child
            # The mark of this walk: expressions share nodes, and one that is reached twice is used once.
            if below[place, MARK] != walk:
                below[place, MARK] = walk
                visited[count] = child
                count += 1
    return count


@njit(nogil=True, cache=True)
def drop_unused(candidates, count, g, dropped, dropped_count):
    """Free those of some nodes that no subscription uses; write down the predicates of leaves, and return how many."""
    meta = g.meta
    for index in range(count):
        node = candidates[index]
        if node >= 0 and g.books[node, USES] == 0:
            start = g.inner[node, CHILD_START]
            for edge in range(start, start + g.inner[node, CHILD_COUNT]):
                unlink(edge, g)
    for index in range(count):
        node = candidates[index]
        if node < 0:
            if g.leaf_books[-1 - node, USES] == 0:
                dropped[dropped_count] = -1 - node
                dropped_count += 1
            continue
        if g.books[node, USES] > 0:
            continue
        if g.inner[node, KIND] == ALWAYS:
            meta[ALWAYS_AT] = -1
        else:
            leave(node, g.keys, g.table, meta)
            size_class = class_of(np.int64(g.inner[node, CHILD_COUNT]))
            give_block(g.children, OF_CHILDREN, g.inner[node, CHILD_START], size_class, g.heads)
            meta[EDGES] -= g.inner[node, CHILD_COUNT]
        g.level_counts[g.inner[node, LEVEL]] -= 1
        g.inner[node, KIND] = GONE
        g.inner[node, CHILD_COUNT] = 0
        g.inner[node, STANDING] = meta[FREE]
        meta[FREE] = node
        meta[LIVE] -= 1
    while meta[LEVELS] > 0 and g.level_counts[meta[LEVELS]] == 0:
        meta[LEVELS] -= 1
    return dropped_count


@njit(nogil=True, cache=True)
def insert_many(code, starts, roots, handles, numbers, g, w):
    """Insert expressions; return DONE, or which table is full: call again when it is larger, and it goes on.

    code     int32[:]   the instructions of all expressions, those of expression i from starts[i] up to starts[i + 1]
    roots    int32[:]   the root of each, as an operand, NEVER or EVER
    numbers  uint32[:]  the predicates that the code speaks of
    """
    meta = g.meta
    while meta[NEXT] < roots.size:
        each = meta[NEXT]
        # Room is looked for before a phase begins, or before each edge, and where it was is noted in `meta`: who comes
        # back with larger tables goes on there, and nothing is done twice.
        if meta[PHASE] == BUILDING:
            size = starts[each + 1] - starts[each] + 4
            if (
                meta[ROWS] + size > g.inner.shape[0]
                or meta[LEVELS] + size >= g.level_counts.size
                or 2 * (meta[ENTRIES] + size) > g.table.size
            ):
                return NO_ROWS
            if meta[CHILD_TOP] + 3 * size > g.children.shape[0]:
                return NO_CHILDREN
            meta[CREATED] = 0
            root = built(code, starts[each], starts[each + 1], np.int64(roots[each]), numbers, g, w)
            if root == EVER:
                if meta[ALWAYS_AT] < 0:
                    meta[ALWAYS_AT] = new_node(np.int64(ALWAYS), np.int64(1), np.int64(1), g)
                root = meta[ALWAYS_AT]
            meta[ROOT] = root
            meta[PHASE], meta[LINKED], meta[EDGE] = LINKING, 0, 0
        if meta[PHASE] == LINKING:
            while meta[LINKED] < meta[CREATED]:
                node = w.created[meta[LINKED]]
                while meta[EDGE] < g.inner[node, CHILD_COUNT]:
                    if not link(node, np.int64(g.inner[node, CHILD_START]) + meta[EDGE], g):
                        return NO_PARENTS
                    meta[EDGE] += 1
                meta[LINKED] += 1
                meta[EDGE] = 0
            meta[PHASE] = HOLDING
        if meta[ROOT] == NEVER:
            g.subscriptions[handles[each], 0] = NEVER
        else:
            if meta[STANDING_COUNT] == g.standing.size or not hold(meta[ROOT], handles[each], g):
                return NO_HOLDERS
            count_uses(meta[ROOT], np.int64(1), np.int64(0), g, w.visited)
        # What was built on the way and turned out to be part of no expression: operands that were taken apart.
        drop_unused(w.created, meta[CREATED], g, w.spare, np.int64(0))
        meta[PHASE] = BUILDING
        meta[NEXT] += 1
    return DONE


@njit(nogil=True, cache=True)
def remove_many(handles, g, visited, dropped):
    """Remove subscriptions, and what only they used; write down the predicates of dropped leaves, return how many."""
    count = np.int64(0)
    for handle in handles:
        if g.subscriptions[handle, 0] != NEVER:
            node = let_go(handle, g)
            used = count_uses(node, np.int64(-1), np.int64(g.subscriptions[handle, 2]), g, visited)
            count = drop_unused(visited, used, g, dropped, count)
    return count


@njit(nogil=True, cache=True)
def move_to_bands(handles, bands, g, visited):
    """Put subscriptions into other bands of priority."""
    for index in range(handles.size):
        handle = handles[index]
        node = np.int64(g.subscriptions[handle, 0])
        if node != NEVER:
            count_uses(node, np.int64(-1), np.int64(g.subscriptions[handle, 2]), g, visited)
            count_uses(node, np.int64(1), np.int64(bands[index]), g, visited)
        g.subscriptions[handle, 2] = bands[index]
