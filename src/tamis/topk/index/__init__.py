"""Which of many subscriptions does an event concern at once?

Those whose k-th best event it beats. The set of such events is a region of the attribute space: a ball around a centre,
a half-space beyond a plane. As windows move on, regions grow and shrink. An index finds the subscriptions in whose
regions an event lies; there are three, and which is fastest is measured on the traffic itself (`choice`).

Source: Pripužić 2010, section 3.6.1 (docs/bibliography.md).
"""
