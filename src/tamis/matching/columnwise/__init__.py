"""Expressions over whole columns of events.

`term_column` and `truth_codes` give for all events of a batch what the reference meaning gives for one. A `series` is
what a node gives; `numbers`, `comparison`, `texts`, `arrays`, `places` and `truths` say what each function makes of its
arguments; `evaluation` walks the expression; `rows` is the way out where a column has no answer.
"""

from tamis.matching.columnwise.evaluation import BatchSeries, term_column, truth_codes

__all__ = ["BatchSeries", "term_column", "truth_codes"]
