"""The three classes of auction subscriptions, as the source's examples instantiate them, and its example event."""

from __future__ import annotations

import tamis

S1 = """contains(title, 'Harry Potter') AND ((condition = 'New' AND price < 15) OR (price < 12 AND condition = 'Used'))
    AND ending_within < 1440"""
S2 = """contains(title, 'Harry Potter') AND ending_within < 1440 AND (
    (format = 'Hardcover' AND ((condition = 'New' AND price < 25) OR (price < 20 AND condition = 'Used'))) OR
    (format = 'Softcover' AND ((condition = 'New' AND price < 15) OR (price < 10 AND condition = 'Used'))))"""
S3 = """(category = 'Literature, Ancient' OR contains(author, 'JK Rowling')) AND (
    (ending_within < 60 AND (bids = 0 OR special_attribute = 'Signed')) OR
    (buy_it_now AND special_attribute = 'Signed'))"""
CLASSES = [tamis.parse(text) for text in (S1, S2, S3)]

EVENT = {
    "category": "Fantasy",
    "format": "Softcover",
    "special_attribute": "Unspecified",
    "condition": "Used",
    "buy_it_now": False,
    "price": 11.0,
    "ending_within": 360,
    "bids": 0,
    "title": "Harry Potter and the Goblet of Fire",
    "author": "JK Rowling",
}
