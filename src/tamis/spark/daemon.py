"""How do Spark's Python workers start without waiting for imports? A fork server with the imports done.

Spark forks its Python workers from a daemon. This daemon has imported the matcher and its compiled kernels before it
forks, so that a worker is ready at once instead of after seconds: set `spark.python.daemon.module` to
`tamis.spark.daemon`, as `tamis.spark.session` does.
"""

import tamis.spark.batch  # noqa: F401 - for its imports
from tamis.matching.matcher import Matcher


def warm_up() -> None:
    """Match a little, so that the kernels are there."""
    matcher = Matcher()
    matcher.add_many({1: "price < 20 AND category = 'Thriller'", 2: "price < 30 OR bids > 3"})
    matcher.match_batch([{"price": number, "category": "Thriller", "bids": 2} for number in range(64)])
    matcher.match({"price": 12})


if __name__ == "__main__":
    from pyspark.daemon import manager

    warm_up()
    manager()
