"""Where does a value stand on a line, and which values make a predicate true?

The exact answer, of which there is one: all values on one line (`lines`), sets of them as cuts in it (`value_sets`),
the sets of all values of a kind or type (`kinds`), and for every predicate about one term and constants the two sets of
values that make it true and that make it false (`predicates`). The compiled form of the same, with codes for values, is
`matching.axes`; it is tested against this one.
"""
