"""What does the outside talk to? HTTP, WebSocket and server-sent events.

`server` listens, `guarding` is the door that every request passes, `routes` says what may be asked, `answers` how it is
said; `web_socket`, `event_stream` and `consuming` carry deliveries. Nothing here decides anything: a request becomes a
message for the core, and what the core answers becomes bytes.
"""
