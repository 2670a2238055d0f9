"""How do people use Tamis without writing Python? Brokers on real sockets: the service.

A broker is one process. Publishers send it CloudEvents over HTTP or WebSocket, subscribers register texts of the
language and receive what matches, at least once, in the order of a durable log. What it decides is in `node`, a state
machine without I/O; `log` keeps the events and `state` everything else; `http` is what the outside talks to; `client`
is for the other end. `serving` puts them together.
"""
