"""Seo, Kim, Kim, Han: Relaxed Contrastive Learning for Federated Learning (CVPR 2024).

The rule of its published index files (`niidpart registry show fedrcl/cifar10-dir0.05`), which
FedACG (CVPR 2024) has too: each of 100 parties draws its classes from Dir(alpha), and all get
equally many. On streams of our own, so not the same rows; for these import the file.
"""

from . import NamedRecipe

DATASETS = ("cifar10", "cifar100", "tiny-imagenet")
ALPHAS = (0.05, 0.1, 0.3, 0.6)

RECIPES = {
    f"{data}-dir{alpha:g}": NamedRecipe(
        f"CVPR 2024, section 5.1: {data}, each party q_i ~ Dir({alpha:g}), equal sizes",
        data,
        "party-dir",
        {"beta": alpha},
        n_parties=100,
    )
    for data in DATASETS
    for alpha in ALPHAS
}
RECIPES |= {
    f"{data}-iid": NamedRecipe(f"CVPR 2024: {data}, IID", data, "homo", n_parties=100)
    for data in DATASETS
}
