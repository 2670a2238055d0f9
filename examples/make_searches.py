"""Write a database of saved searches, some wrong: make_searches.py COUNT FILE."""

import sqlite3
import sys

CATEGORIES = ("Thriller", "Poetry", "Science", "Travel", "Cooking", "History", "Art")


def searches(count):
    """Yield id, condition and address of each search: the first are ann's and bob's."""
    yield "ann", "category = 'Thriller' AND price < 20", "ann@example.org"
    yield "bob", "title LIKE '%Tide%' AND bids <= 3", "bob@example.org"
    yield "wrong-1", "price <", "cy@example.org"
    yield "wrong-2", "prise < 20", "dee@example.org"
    yield "wrong-3", "price < 'cheap'", "eve@example.org"
    for number in range(5, count):
        category, limit = CATEGORIES[number % 7], 1 + number % 90
        condition = f"category = '{category}' AND price < {limit}"
        yield f"s{number}", condition, f"{number}@example.org"


def main():
    """Write the database, and say what is in it."""
    count, path = int(sys.argv[1]), sys.argv[2]
    with sqlite3.connect(path) as database:
        columns = "id TEXT PRIMARY KEY, condition TEXT, email TEXT"
        database.execute(f"CREATE TABLE searches ({columns})")
        database.executemany("INSERT INTO searches VALUES (?, ?, ?)", searches(count))
    print(f"{path} has {count:,} searches")


if __name__ == "__main__":
    main()
