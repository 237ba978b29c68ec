"""Air quality of twelve stations in Beijing, hour by hour, as UCI has it."""

from pathlib import Path

import numpy as np

from ..arithmetic.exact import Floats
from ..data import Array, Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.quantiles import Quantiles, number_by_quantiles
from ..data.readers.arrow_values import read_column
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.named_numbers import read_named_columns, read_numbers

_TARGET = "PM2.5"
_WEATHER = ("TEMP", "PRES", "DEWP", "RAIN", "WSPM")
_NUMBERS = ("month", "hour", *_WEATHER, "PM10", "SO2", "NO2", "CO", "O3", _TARGET)
_STATION = "station"
_FOLDER = "PRSA_Data_20130301-20170228"
_ARCHIVE = "https://archive.ics.uci.edu/static/public/501/beijing+multi+site+air+quality+data.zip"

PLACES = DataPlaces(
    title="air quality",
    folders=("", _FOLDER, f"PRSA2017_Data_20130301-20170228/{_FOLDER}", "air-quality"),
    forms=(("PRSA_Data_*_20130301-20170228.csv",),),
    get=f"curl -o {{root}}/air.zip {_ARCHIVE} && unzip -d {{root}} {{root}}/air.zip && "
    "unzip -d {root} {root}/PRSA2017_Data_20130301-20170228.zip",
)


def air_quality(
    root: str | Path, *, quantiles: Quantiles = "0.5", any_size: AnySize = False
) -> Data:
    """Air quality: hours of twelve stations in Beijing, float64 [N, 12], by fine dust (PM2.5).

    Zhang et al., Proceedings of the Royal Society A 473, 2017: 420,768 hours from March 2013 to
    February 2017. Groups are the stations, by name. Features are month, hour, the weather in five
    numbers and five other pollutants. Hours in which one of these is missing are left out. The
    target is a number: its classes are cut at quantiles of all rows. There is no test set. Needs
    pyarrow.

    Parameters
    ----------
    root : path
        The folder that holds `PRSA_Data_STATION_20130301-20170228.csv` of each station.
    quantiles : str
        Shares of the rows at which the dust is cut into classes.
    any_size : bool
        Take other counts of stations and hours than the published ones.
    """
    files = PLACES.require(root)
    table = read_named_columns(files, _NUMBERS, [_STATION], missing=["NA"])
    require_published_counts(
        "air quality",
        got=(table.n, len(files)),
        published=(420_768, 12),
        kinds=("hours", "stations"),
        any_size=any_size,
    )
    numbers = np.stack([read_numbers(table, name, files) for name in _NUMBERS], axis=1)
    is_whole = np.isfinite(numbers).all(axis=1)
    stations = read_column(table.column(_STATION), _STATION)
    return _make_data(numbers[is_whole], stations[is_whole], quantiles)


def _make_data(numbers: Floats, stations: Array, quantiles: str) -> Data:
    labels, names = number_by_quantiles(numbers[:, -1], quantiles, _TARGET)
    return from_arrays(numbers[:, :-1], labels, groups=stations, class_names=names)


ENTRY = DataSource(load=air_quality, places=PLACES, paper="zhang2017cautionary")
