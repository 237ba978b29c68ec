"""Cha, Chang: Addressing Non-IID with Data Quantity Skew in Federated Learning (Information 2025).

Training and test set together, a quarter of each party's examples for its test part. The three
severities by the authors' code (a Dirichlet draw per class with NIID-Bench's balance step, at least
40 examples a party), and, as `-party`, by the text (a draw per party). The text gives no number for
the spread of sizes; 0, 0.5 and 1 are ours.
"""

from . import NamedRecipe

SEVERITIES = {"iid": (1000.0, 0.0), "mild": (0.5, 0.5), "severe": (0.01, 1.0)}  # beta, spread
DATASETS = {"": "mnist", "cifar10-": "cifar10"}  # prefix of the name


def _by_code(dataset: str, severity: str) -> NamedRecipe:
    beta, _ = SEVERITIES[severity]
    return NamedRecipe(
        f"Information 2025, section 4.1, each class p_k ~ Dir({beta:g}): {severity}, {dataset}",
        dataset,
        "dir-balanced",
        {"beta": beta, "min_size": 40},
        test=0.25,
        source={"pool": True},
    )


def _by_text(dataset: str, severity: str) -> NamedRecipe:
    beta, spread = SEVERITIES[severity]
    return NamedRecipe(
        f"Information 2025, section 3.2, each party q_i ~ Dir({beta:g}): {severity}, {dataset}",
        dataset,
        "party-dir",
        {"beta": beta, "min_size": 40, "spread": spread},
        test=0.25,
        source={"pool": True},
    )


RECIPES = {}
for _prefix, _dataset in DATASETS.items():
    for _severity in SEVERITIES:
        RECIPES[f"{_prefix}{_severity}"] = _by_code(_dataset, _severity)
    for _severity in SEVERITIES:
        RECIPES[f"{_prefix}{_severity}-party"] = _by_text(_dataset, _severity)
