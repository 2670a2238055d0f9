"""How do events outlive the process? The durable log.

`base` is the protocol: blocks of events are appended, and whoever waits is told when they are on disk. `sqlite` keeps
them in files on this machine, `jetstream` in a NATS stream that several brokers share.
"""
