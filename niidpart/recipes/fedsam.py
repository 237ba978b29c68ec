"""Caldarola, Caputo, Ciccone: Improving Generalization in FL by Seeking Flat Minima (ECCV 2022).

The rule of its index files (`niidpart registry show fedsam/cifar10-a0.50`), which FedGloSS
(CVPR 2025) has too, after Hsu et al. (2019): each of 100 parties draws its classes from
Dir(alpha x prior), so of K equal classes each has beta = alpha / K. On streams of our own, so not
the same rows; for these import the file.
"""

from . import NamedRecipe

ALPHAS = {
    "cifar10": (0.05, 0.1, 0.2, 0.5, 1.0, 10.0, 100.0),
    "cifar100": (0.5, 1000.0),
}
N_CLASSES = {"cifar10": 10, "cifar100": 100}

RECIPES = {
    f"{data}-a{alpha:g}": NamedRecipe(
        f"ECCV 2022, section 5: {data}, each party q_i ~ Dir({alpha:g} x prior), equal sizes",
        data,
        "party-dir",
        {"beta": alpha / N_CLASSES[data]},
        n_parties=100,
    )
    for data, alphas in ALPHAS.items()
    for alpha in alphas
}
RECIPES |= {
    f"{data}-a0": NamedRecipe(
        f"ECCV 2022, section 5: {data}, alpha 0: one class a party",
        data,
        "labels",
        {"k": 1},
        n_parties=100,
    )
    for data in ALPHAS
}
