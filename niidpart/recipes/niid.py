"""Li, Diao, Chen, He: Federated Learning on Non-IID Data Silos: An Experimental Study (ICDE 2022, NIID-Bench), by the rules of the authors' code.

On streams of our own, so not the same rows, and nothing is redrawn: where the authors draw again until everybody has 10 examples, rows are moved to
those who have fewer, so more parties hold exactly 10. For the same rows see the strategy niidbench.
"""

from . import NamedRecipe

DIR = ("dir-balanced", {"beta": 0.5})
QUANTITY = ("quantity", {"beta": 0.5})
NOISE = (("noise", {"sigma": 0.1, "level": "std", "fresh": True}),)
CLASSES = {f"c{k}": ("labels", {"k": k}) for k in (1, 2, 3)}
IMAGES, TABLES = ("mnist", "fmnist", "cifar10", "svhn"), ("adult", "rcv1", "covtype")
WHAT = {
    "dir0.5": "label skew p_k ~ Dir(0.5)",
    "c1": "label skew #C=1",
    "c2": "label skew #C=2",
    "c3": "label skew #C=3",
    "noise0.1": "feature skew Gau(0.1)",
    "quantity0.5": "quantity skew q ~ Dir(0.5)",
    "homo": "homogeneous partition",
}


def _setting(dataset: str, setting: str, where: str, parties: int | None = 10) -> NamedRecipe:
    about = f"ICDE 2022, {where}: {dataset}, {WHAT[setting]}"
    if setting == "noise0.1":
        return NamedRecipe(about, dataset, "homo", n_parties=parties, transforms=NOISE)
    strategy, params = {"dir0.5": DIR, "quantity0.5": QUANTITY, "homo": ("homo", {})}.get(
        setting
    ) or CLASSES[setting]
    return NamedRecipe(about, dataset, strategy, params, n_parties=parties)


RECIPES = {f"{d}-{s}": _setting(d, s, "Table III") for d in IMAGES for s in WHAT}
RECIPES |= {
    f"{d}-{s}": _setting(d, s, "Table III")
    for d in TABLES
    for s in ("dir0.5", "c1", "quantity0.5", "homo")
}
RECIPES |= {
    "fcube": NamedRecipe(
        "ICDE 2022, Table III: FCUBE, synthetic feature skew", "fcube", "fcube", n_parties=4
    ),
    "fcube-homo": _setting("fcube", "homo", "Table III", parties=4),
    "femnist-writer": NamedRecipe(
        "ICDE 2022, Table III: the digits of FEMNIST, feature skew by writer",
        "femnist",
        "group",
        source={"digits": True},
    ),
    "femnist-homo": NamedRecipe(
        "ICDE 2022, Table III: the digits of FEMNIST, homogeneous partition",
        "femnist",
        "homo",
        source={"digits": True},
    ),
    "cifar10-dir0.5-noise0.1": NamedRecipe(
        "ICDE 2022, Table V, case 1: cifar10, label and feature skew",
        "cifar10",
        *DIR,
        transforms=NOISE,
    ),
    "cifar10-quantity0.5-noise0.1": NamedRecipe(
        "ICDE 2022, Table V, case 2: cifar10, quantity and feature skew",
        "cifar10",
        *QUANTITY,
        transforms=NOISE,
    ),
    "cifar10-dir0.1": NamedRecipe(
        "NIID-Bench's leaderboard: cifar10, label skew p_k ~ Dir(0.1)",
        "cifar10",
        "dir-balanced",
        {"beta": 0.1},
    ),
}
RECIPES |= {
    f"cifar10-{s}-100": _setting(
        "cifar10", s, "section V-D, 100 parties of which a tenth trains in a round", parties=100
    )
    for s in WHAT
}
