"""FL-Simulator's split of CIFAR-10 and CIFAR-100, as FedSpeed (2023) and others train on it.

100 parties; replays of its code (commit 502bec6), whose own seed is 20: say --seed 20.
"""

from . import NamedRecipe

BETAS = (0.1, 0.3, 0.6)

RECIPES = {
    f"{data}-dir{beta:g}": NamedRecipe(
        f"FedSpeed 2023, by FL-Simulator's code: {data}, each party q_i ~ Dir({beta:g})",
        data,
        "fl-simulator",
        {"rule": "party-dir", "beta": beta},
        n_parties=100,
    )
    for data in ("cifar10", "cifar100")
    for beta in BETAS
}
