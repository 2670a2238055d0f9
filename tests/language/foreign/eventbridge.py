"""What does a pattern of EventBridge match? The definition, as plain as it can be said.

Read from the user guide of Amazon EventBridge and the README of Event Ruler; nothing of the translator is used here.
"""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network

ABSENT = object()


def matches(pattern, event):
    """Does an event match? Every field of the pattern has to."""
    for name, wanted in pattern.items():
        if name == "$or" and isinstance(wanted, list) and all(isinstance(each, dict) for each in wanted):
            if not any(matches(each, event) for each in wanted):
                return False
        elif isinstance(wanted, dict):
            if not any(matches(wanted, each) for each in objects(event.get(name, ABSENT))):
                return False
        else:
            values = leaves(event.get(name, ABSENT))
            if not any(rule_matches(rule, values) for rule in wanted):
                return False
    return True


def objects(value):
    """The objects that stand at a place: arrays stand for their elements; where there is none, every field is absent."""
    if isinstance(value, list):
        return [found for element in value for found in objects(element)]
    return [value] if isinstance(value, dict) else [{}]


def leaves(value):
    """The values at a place: arrays stand for their elements, and objects are no values."""
    if value is ABSENT or isinstance(value, dict):
        return []
    if isinstance(value, list):
        return [leaf for element in value for leaf in leaves(element)]
    return [value]


def rule_matches(rule, values):
    if isinstance(rule, dict) and "exists" in rule:
        return bool(values) == rule["exists"]
    return any(value_matches(rule, value) for value in values)


def value_matches(rule, value):
    if not isinstance(rule, dict):
        return same(rule, value)
    [(operator, operand)] = rule.items()
    if operator == "anything-but":
        if isinstance(operand, dict):
            [(name, contents)] = operand.items()
            contents = contents if isinstance(contents, list) else [contents]
            return not any(value_matches({name: each}, value) for each in contents)
        return not any(same(each, value) for each in (operand if isinstance(operand, list) else [operand]))
    if operator == "numeric":
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return all(compared(sign, value, number) for sign, number in zip(operand[::2], operand[1::2], strict=True))
    if not isinstance(value, str):
        return False
    if operator == "cidr":
        try:
            return ip_address(value) in ip_network(operand, strict=False)
        except ValueError:
            return False
    if operator == "wildcard":
        parts = re.findall(r"\\.|\*|[^\\*]", operand, re.DOTALL)
        pattern = "".join(".*" if part == "*" else re.escape(part[-1]) for part in parts)
        return re.fullmatch(pattern, value, re.DOTALL) is not None
    if isinstance(operand, dict):  # a prefix or a suffix in any case
        operand, value = operand["equals-ignore-case"].lower(), value.lower()
    if operator == "prefix":
        return value.startswith(operand)
    if operator == "suffix":
        return value.endswith(operand)
    assert operator == "equals-ignore-case"
    return value.lower() == operand.lower()


def compared(sign, value, number):
    return {
        "<": value < number,
        "<=": value <= number,
        ">": value > number,
        ">=": value >= number,
        "=": value == number,
    }[sign]


def same(one, other):
    """Are two values of JSON equal? A Boolean is no number."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    return isinstance(one, str) == isinstance(other, str) and one == other


# -- Shapes, for what a translation assumes


def shapes(value):
    """The shapes that a value has, as assumptions name them."""
    if value is ABSENT:
        return {"absent"}
    if isinstance(value, list):
        found = {"an array"}
        found |= {"an array of arrays"} if any(isinstance(each, list) for each in value) else set()
        return found | (set() if leaves(value) else {"an array without values"})
    if isinstance(value, dict):
        return {"an object"}
    return {"null"} if value is None else {"a text"} if isinstance(value, str) else set()


def is_as_assumed(event, assumption):
    """Is an event as an assumption has it?"""
    value = event
    for name in assumption.path:
        value = value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
    return not shapes(value) & assumption.never
