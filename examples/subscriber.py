"""Receive what ann has not seen yet, as a durable subscriber: subscriber.py COUNT."""

import os
import sys
from itertools import islice

import tamis

count = int(sys.argv[1])
with (
    tamis.Client(os.environ.get("TAMIS_URL", "http://localhost:7410")) as broker,
    broker.subscribe("price < 20", name="ann") as offers,
):
    for offer in islice(offers, count):
        print(offer.type, offer.data["title"], offer.data["price"])
        offer.done()  # without this line it would come again
