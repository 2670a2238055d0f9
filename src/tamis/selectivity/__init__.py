"""How often is a predicate true?

Matchers put what is rarely true first. An estimate comes from a sample of events where there is one, and from the
predicates themselves where there is none.
"""
