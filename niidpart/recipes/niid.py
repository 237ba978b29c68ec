"""Li, Diao, Chen, He: Federated Learning on Non-IID Data Silos: An Experimental Study (ICDE 2022).

The settings of NIID-Bench, by the rules of the authors' code. On streams of our own, so not the
same rows, and nothing is redrawn: where the authors draw again until everybody has 10 examples,
rows are moved to those who have fewer, so more parties hold exactly 10. For the same rows see the
strategy niidbench.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from . import NamedRecipe

TABLE = "ICDE 2022, Table III"
IMAGES, TABLES = ("mnist", "fmnist", "cifar10", "svhn"), ("adult", "rcv1", "covtype")
NOISE = (("noise", {"sigma": 0.1, "level": "std", "fresh": True}),)


class SkewSetting(NamedTuple):
    """A column of Table III: what it is called in words, and what `make` is asked for."""

    words: str
    strategy: str
    params: Mapping[str, Any] = {}
    transforms: tuple[tuple[str, Mapping[str, Any]], ...] = ()


SKEWS = {
    "dir0.5": SkewSetting("label skew p_k ~ Dir(0.5)", "dir-balanced", {"beta": 0.5}),
    "c1": SkewSetting("label skew #C=1", "labels", {"k": 1}),
    "c2": SkewSetting("label skew #C=2", "labels", {"k": 2}),
    "c3": SkewSetting("label skew #C=3", "labels", {"k": 3}),
    "noise0.1": SkewSetting("feature skew Gau(0.1)", "homo", transforms=NOISE),
    "quantity0.5": SkewSetting("quantity skew q ~ Dir(0.5)", "quantity", {"beta": 0.5}),
    "homo": SkewSetting("homogeneous partition", "homo"),
}
OF_TABLES = ("dir0.5", "c1", "quantity0.5", "homo")  # those that data without images has


def _setting(dataset: str, name: str, where: str = TABLE, n_parties: int = 10) -> NamedRecipe:
    skew = SKEWS[name]
    return NamedRecipe(
        f"{where}: {dataset}, {skew.words}",
        dataset,
        skew.strategy,
        skew.params,
        n_parties=n_parties,
        transforms=skew.transforms,
    )


def _add_noise(about: str, name: str) -> NamedRecipe:
    """Return a setting of Table V: a skew of Table III and noise."""
    skew = SKEWS[name]
    return NamedRecipe(about, "cifar10", skew.strategy, skew.params, transforms=NOISE)


_DIGITS = {"digits": True}
_LEADERBOARD = "NIID-Bench's leaderboard: cifar10, label skew p_k ~ Dir(0.1)"
_MANY = "ICDE 2022, section V-D, 100 parties of which a tenth trains in a round"

RECIPES = {f"{data}-{name}": _setting(data, name) for data in IMAGES for name in SKEWS}
RECIPES |= {f"{data}-{name}": _setting(data, name) for data in TABLES for name in OF_TABLES}
RECIPES |= {
    "fcube": NamedRecipe(f"{TABLE}: FCUBE, synthetic feature skew", "fcube", "fcube", n_parties=4),
    "fcube-homo": _setting("fcube", "homo", n_parties=4),
    "femnist-writer": NamedRecipe(
        f"{TABLE}: the digits of FEMNIST, feature skew by writer",
        "femnist",
        "group",
        source=_DIGITS,
    ),
    "femnist-homo": NamedRecipe(
        f"{TABLE}: the digits of FEMNIST, homogeneous partition",
        "femnist",
        "homo",
        source=_DIGITS,
    ),
    "cifar10-dir0.5-noise0.1": _add_noise(
        "ICDE 2022, Table V, case 1: cifar10, label and feature skew", "dir0.5"
    ),
    "cifar10-quantity0.5-noise0.1": _add_noise(
        "ICDE 2022, Table V, case 2: cifar10, quantity and feature skew", "quantity0.5"
    ),
    "cifar10-dir0.1": NamedRecipe(_LEADERBOARD, "cifar10", "dir-balanced", {"beta": 0.1}),
}
RECIPES |= {
    f"cifar10-{name}-100": _setting("cifar10", name, where=_MANY, n_parties=100) for name in SKEWS
}
