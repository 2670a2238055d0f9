"""How do events get to somebody who does not ask for them? Webhooks: the broker posts them to an address.

A webhook is a consumer of a durable subscriber that runs inside the broker. What is posted and answered 2xx is done;
anything else is tried again, with growing pauses, until the subscriber's `attempts` are used up and the event becomes a
dead letter. So all that holds for subscribers holds here: positions, order, dead letters, roles.

`addresses` says where may be posted to, `signatures` how a receiver knows that it is us, `posting` posts one event, and
`sending` is the consumer.
"""
