"""Cha, Chang: Addressing Non-IID with Data Quantity Skew in Federated Learning (Information 2025).

Training and test set together, a quarter of each party's examples for its test part. The three severities by the authors' code (a Dirichlet
draw per class with NIID-Bench's balance step, at least 40 examples a party), and, as `-party`, by the text (a draw per party). The text
gives no number for the spread of sizes; 0, 0.5 and 1 are ours.
"""

from . import NamedRecipe

SEVERITIES = {"iid": (1000.0, 0.0), "mild": (0.5, 0.5), "severe": (0.01, 1.0)}


def _setting(dataset: str, severity: str, by_text: bool) -> NamedRecipe:
    beta, spread = SEVERITIES[severity]
    strategy, more = ("party-dir", {"spread": spread}) if by_text else ("dir-balanced", {})
    how = "section 3.2, each party q_i ~ Dir" if by_text else "section 4.1, each class p_k ~ Dir"
    about = f"Information 2025, {how}({beta:g}): {severity}, {dataset}"
    return NamedRecipe(
        about,
        dataset,
        strategy,
        {"beta": beta, "min_size": 40} | more,
        test=0.25,
        source={"pool": True},
    )


RECIPES = {
    f"{prefix}{severity}{'-party' if by_text else ''}": _setting(dataset, severity, by_text)
    for prefix, dataset in (("", "mnist"), ("cifar10-", "cifar10"))
    for by_text in (False, True)
    for severity in SEVERITIES
}
