"""Measurements, one question per module.

A benchmark is a generator of rows. It builds and compiles before the clock starts, and each row carries a count that
would give away a fast wrong answer. Two things that are compared are measured in the same run, because the machine
is not quiet: only ratios mean anything.
"""
