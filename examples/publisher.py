"""Publish three offers to a broker."""

import os

import tamis

OFFERS = [
    {"title": "The Tide", "price": 12.5},
    {"title": "Collected Poems", "price": 48},
    {"title": "Night Train", "price": 7},
]

with tamis.Client(os.environ.get("TAMIS_URL", "http://localhost:7410")) as broker:
    positions = broker.publish_many(OFFERS, type="offer", source="/shop")
    print(len(positions), "offers are on the broker's disk")
