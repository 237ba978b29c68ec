"""What the papers print, and what is run beside it: the data of reproduction.py."""

from dataclasses import dataclass, field
from typing import Any

MU = ({"mu": 0.001}, {"mu": 0.01}, {"mu": 0.1}, {"mu": 1.0})


@dataclass(frozen=True)
class Cell:
    """A printed accuracy in percent, its standard deviation over trials (None: not printed), and one unit of its last digit."""

    mean: float
    std: float | None = None
    unit: float = 0.1


@dataclass(frozen=True)
class Group:
    """Runs that belong in one table.

    algorithms: each with the options to run, () for the preset's. split: what `niidpart.make` gets besides the recipe. overrides: settings in the
    place of the preset's. statistics: of algorithms for which the paper prints the best of all rounds; else the final accuracy.
    cells: (recipe, algorithm).
    """

    title: str
    preset: str
    recipes: tuple[str, ...]
    algorithms: dict[str, tuple[dict[str, Any], ...]]
    cells: dict[tuple[str, str], Cell]
    overrides: dict[str, Any] = field(default_factory=dict)
    split: dict[str, Any] = field(default_factory=dict)
    dataset: str | None = None
    model: str | None = None
    metric: str = "test_accuracy"
    statistics: dict[str, str] = field(default_factory=dict)


def rows(
    printed: dict[str, str], algorithms: tuple[str, ...], unit: float = 0.1
) -> dict[tuple[str, str], Cell]:
    """{recipe: "mean±std mean±std ..."} in the order of the algorithms; "-" for a cell that is no target."""
    cells = {}
    for recipe, text in printed.items():
        for algorithm, value in zip(algorithms, text.split(), strict=True):
            if value != "-":
                mean, _, std = value.partition("±")
                cells[recipe, algorithm] = Cell(float(mean), float(std) if std else None, unit)
    return cells


FOUR = ("fedavg", "fedprox", "scaffold", "fednova")
GRID: dict[str, tuple[dict[str, Any], ...]] = {
    "fedavg": (),
    "fedprox": MU,
    "scaffold": (),
    "fednova": (),
}
SIX = ("fedavg", "fedprox", "scaffold", "moon", "fednaca", "fedmoc")

# Li et al., ICDE 2022, Table III: three trials; FedProx is the best mu of the grid on the test set
FCUBE = {
    "niid/fcube": "99.8±0.2 99.8±0.0 99.7±0.3 99.7±0.1",
    "niid/fcube-homo": "99.7±0.1 99.6±0.2 99.8±0.1 99.9±0.1",
}
ADULT = {
    "niid/adult-dir0.5": "78.4±0.9 80.5±0.7 76.4±0.0 52.3±26.7",
    "niid/adult-c1": "82.5±2.2 76.4±0.0 23.6±0.0 50.8±0.9",
    "niid/adult-quantity0.5": "82.2±0.1 84.8±0.2 81.6±4.5 43.2±33.9",
    "niid/adult-homo": "82.6±0.4 84.8±0.2 83.8±2.5 82.6±0.0",
}
MNIST = {
    "niid/mnist-dir0.5": "98.9±0.1 98.9±0.1 99.0±0.1 98.9±0.1",
    "niid/mnist-c2": "97.0±0.4 96.4±0.3 95.9±0.3 94.5±1.5",
}
CIFAR = {"niid/cifar10-dir0.5": "68.2±0.7 67.9±0.7 69.8±0.7 66.8±1.5"}

# Wang, Wang, Pei, ICMLC 2024, Table 1: the highest of 120 rounds, no deviation; FedProx is left out, since its mu is not given
FMNIST = {"fedrl/fmnist": "77.66 81.27 53.78 73.49"}

# Cha, Chang, Information 2025, Table 1, a fifth of the parties; FedProx, SCAFFOLD and FedNACA come from faulty code and are no targets
MAP = {
    "map004/severe": "71.02±0.76 - - 45.59±1.41 - 84.65±0.78",
    "map004/mild": "96.89±0.52 - - 94.03±0.61 - 96.86±0.44",
    "map004/iid": "97.57±0.20 - - 96.46±0.25 - 97.51±0.20",
}

GROUPS = {
    "fcube": Group("FCUBE (ICDE 2022, Table III)", "niid", tuple(FCUBE), GRID, rows(FCUBE, FOUR)),
    "adult": Group("adult (ICDE 2022, Table III)", "niid", tuple(ADULT), GRID, rows(ADULT, FOUR)),
    "mnist": Group(
        "MNIST (ICDE 2022, Table III)",
        "niid",
        tuple(MNIST),
        GRID | {"fedprox": ({"mu": 0.01},)},
        rows(MNIST, FOUR),
    ),
    "cifar10": Group(
        "CIFAR-10 (ICDE 2022, Table III)",
        "niid",
        tuple(CIFAR),
        GRID | {"fedprox": ({"mu": 0.01},)},
        rows(CIFAR, FOUR),
    ),
    "fmnist": Group(
        "Fashion-MNIST (ICMLC 2024, Table 1)",
        "fedrl",
        tuple(FMNIST),
        {"fedavg": (), "fedrl": (), "solo": (), "scaffold": ()},
        rows(FMNIST, ("fedavg", "fedrl", "solo", "scaffold"), unit=0.01),
        statistics={
            "fedavg": "best",
            "fedrl": "best",
            "scaffold": "best",
        },  # SOLO's is its end point
    ),
    "map": Group(
        "MNIST, a fifth of the parties a round (Information 2025, Table 1)",
        "map004",
        tuple(MAP),
        dict.fromkeys(SIX, ()),
        rows(MAP, SIX, unit=0.01),
        overrides={"fraction": 0.2},
    ),
    "fedcd": Group(
        "Fashion-MNIST, hierarchical archetypes on a small scale (FedCD 2020, section 3.2; mean of the devices' own test parts)",
        "fedcd",
        ("fedcd/hierarchical",),
        {"fedavg": (), "fedcd": ()},
        {},
        split={"n_train": 500, "n_val": 166, "n_test": 100},
        dataset="fmnist",
        model="cnn",
        metric="party_test_accuracy_mean",
        overrides={
            "normalise": "none",
            "crop": 0,
            "flip": False,
            "batch_size": 32,
            "lr": 0.02,
            "lr_drops": (),
        },
    ),
}
