"""How are brokers of the service joined into networks? Links over TCP, TLS and Unix sockets.

A neighbour is a durable subscriber whose filters come over the link: it has a position in the log, is sent what it
wants from there, and acknowledges what is on its own disk. Filters travel beside the events as numbered control
messages, in sessions that go on where they were after a connection broke. What is decided (`sessions`, `settling`,
`neighbours`) knows no socket or clock; what acts (`connections`, `server`) decides nothing.
"""
