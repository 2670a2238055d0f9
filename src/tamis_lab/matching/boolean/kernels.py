"""The compiled loops that write and order trees of bytes; those that evaluate them are among the published algorithms'.

A tree starts with its code. LEAF is followed by a predicate's number in four bytes, ALL (AND), ANY (OR) and PURE (the
root of a pure conjunction) by the number of children and the children; ALWAYS and NEVER stand alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

ALL, ANY, PURE, LEAF, ALWAYS, NEVER = 1, 2, 3, 4, 5, 6
"""The codes of nodes."""


@njit(nogil=True, cache=True)
def encode_trees(shapes, numbers, out):
    """Write trees one behind the other: their shapes, with the number of a predicate behind each LEAF."""
    at = written = leaf = 0
    while at < shapes.size:
        code = shapes[at]
        out[written] = code
        written += 1
        at += 1
        if code == LEAF:
            number = numbers[leaf]
            leaf += 1
            for shift in (0, 8, 16, 24):
                out[written] = (number >> np.uint32(shift)) & np.uint32(255)
                written += 1
        elif code <= PURE:
            out[written] = shapes[at]
            written += 1
            at += 1


@njit(nogil=True, cache=True, inline="always")
def number_at(trees, at):
    """Read the number of the LEAF at a place."""
    return (
        np.uint32(trees[at + 1])
        | np.uint32(trees[at + 2]) << np.uint32(8)
        | np.uint32(trees[at + 3]) << np.uint32(16)
        | np.uint32(trees[at + 4]) << np.uint32(24)
    )


@njit(nogil=True, cache=True)
def list_numbers(trees, locations, sizes, numbers, ends):
    """Write the predicates of all trees, by occurrence; tree t has those up to `ends[t]`."""
    written = 0
    for tree in range(locations.size):
        at = np.int64(locations[tree])
        end = at + np.int64(sizes[tree])
        while at < end:
            code = trees[at]
            if code == LEAF:
                numbers[written] = number_at(trees, at)
                written += 1
                at += 5
            else:
                at += 2 if code <= PURE else 1
        ends[tree] = written
    return written


# -- Layout


class NodeRoom(NamedTuple):
    """Memory to take one tree apart in: room for its nodes.

    nodes    int64[:, 4]  where each is written, its first child, its parent's next child, its last child so far
    shares   float32[:]   how often each holds; while it is read, how many of its children are to come
    waiting  int64[:]     a stack of nodes
    """

    nodes: Any
    shares: Any
    waiting: Any


@njit(nogil=True, cache=True)
def order_children(trees, locations, sizes, shares, sign, room, out):
    """Write trees with the children in the order in which they decide soonest, judging by how often predicates hold.

    Under AND the child comes first that holds least often, under OR the one that holds most often; `sign` -1 turns
    that round. Sizes and places stay the same.
    """
    nodes, node_shares, waiting = room
    for tree in range(locations.size):
        begin = np.int64(locations[tree])
        end = begin + np.int64(sizes[tree])
        code = trees[begin]
        if code != ALL and code != ANY:
            for at in range(begin, end):
                out[at] = trees[at]
            continue
        # Read the nodes into a list of children for each: bytes alone tell where a child ends only by walking over it.
        count = depth = 0
        at = begin
        while at < end:
            if count > 0:
                parent = waiting[depth - 1]
                nodes[count, 2] = -1
                last = nodes[parent, 3]
                if last < 0:
                    nodes[parent, 1] = count
                else:
                    nodes[last, 2] = count
                nodes[parent, 3] = count
            nodes[count, 0], nodes[count, 1], nodes[count, 3] = at, -1, -1
            if trees[at] == LEAF:
                node_shares[count] = shares[number_at(trees, at)]
                at += 5
            else:
                node_shares[count] = trees[at + 1]  # how many children are to come
                waiting[depth] = count
                depth += 1
                at += 2
            count += 1
            if trees[nodes[count - 1, 0]] == LEAF:
                while depth > 0:
                    node_shares[waiting[depth - 1]] -= 1
                    if node_shares[waiting[depth - 1]] > 0:
                        break
                    depth -= 1
        # Children stand behind their parents, so backwards they are known first.
        for node in range(count - 1, -1, -1):
            code = trees[nodes[node, 0]]
            if code == LEAF:
                continue
            # As if the children were independent: AND multiplies how often they hold, OR how often they do not.
            share = np.float32(1)
            child = nodes[node, 1]
            while child >= 0:
                share *= node_shares[child] if code == ALL else np.float32(1) - node_shares[child]
                child = nodes[child, 2]
            node_shares[node] = share if code == ALL else np.float32(1) - share
        # Write them down, the children of each in order.
        waiting[0] = 0
        depth = 1
        written = begin
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            at = nodes[node, 0]
            code = trees[at]
            if code == LEAF:
                for index in range(5):
                    out[written + index] = trees[at + index]
                written += 5
                continue
            out[written], out[written + 1] = code, trees[at + 1]
            written += 2
            direction = np.float32(sign) if code == ALL else np.float32(-sign)
            first = depth
            child = nodes[node, 1]
            while child >= 0:  # the last on the stack is written first
                place = depth
                while place > first and direction * node_shares[waiting[place - 1]] <= direction * node_shares[child]:
                    waiting[place] = waiting[place - 1]
                    place -= 1
                waiting[place] = child
                depth += 1
                child = nodes[child, 2]


@njit(nogil=True, cache=True)
def write_widths(trees, at, out, written, stack):
    """Write a tree with the width of each child in front of it; return where it ends.

    A row of the stack is a node whose children are being written: how many are to come, and where its width goes.
    """
    code = trees[at]
    out[written] = code
    written += 1
    at += 1
    if code == LEAF:
        for _ in range(4):
            out[written] = trees[at]
            written += 1
            at += 1
        return written
    if code > PURE:
        return written
    out[written] = trees[at]
    stack[0, 0], stack[0, 1] = trees[at], -1
    written += 1
    at += 1
    depth = 0
    while depth >= 0:
        place = written
        written += 2
        code = trees[at]
        out[written] = code
        at += 1
        written += 1
        if code != LEAF:
            out[written] = trees[at]
            depth += 1
            stack[depth, 0], stack[depth, 1] = trees[at], place
            at += 1
            written += 1
            continue
        for _ in range(4):
            out[written] = trees[at]
            written += 1
            at += 1
        # A leaf takes five bytes; the width of a junction is known when its last child is written, and is filled in
        # then.
        out[place], out[place + 1] = 5, 0
        while depth >= 0:
            stack[depth, 0] -= 1
            if stack[depth, 0] > 0:
                break
            place = stack[depth, 1]
            if place >= 0:
                width = written - place - 2
                out[place], out[place + 1] = width & 255, width >> 8
            depth -= 1
    return written


@njit(nogil=True, cache=True)
def write_all_widths(trees, locations, out, new_locations, stack):
    """Write all trees with widths, one behind the other; return where the last ends."""
    written = 0
    for tree in range(locations.size):
        new_locations[tree] = written
        written = write_widths(trees, np.int64(locations[tree]), out, written, stack)
    return written
