"""The rankings of all subscriptions in arrays.

An arrival is compared with the k-th best event of every subscription in one loop. Those that it does not interest at
once, nearly all, do nothing: the event waits in a log that all share. A subscription looks at its waiting events
together, when it is next interested, when one of its best leaves, or when the log is full.
"""
