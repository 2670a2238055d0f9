"""How do people use Tamis without writing Python? Brokers on real sockets: the service.

A broker is one process. Publishers send it CloudEvents over HTTP or WebSocket, subscribers register texts of the
language and receive what matches, at least once, in the order of a durable log. What it decides is in `node`, a state
machine without I/O; `core_thread` is the thread that owns the node; `log` keeps the events and `state` everything else;
`http` is what clients talk to, `links` joins brokers, `webhooks` posts events to addresses, and `client` is the other
end. `settings` are what an operator decides, `permissions` what a principal may do. `serving` puts them together.
"""
