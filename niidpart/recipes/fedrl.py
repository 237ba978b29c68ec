"""Wang, Wang, Pei: FedRL: Federated Learning with Non-IID Data via Review Learning (ICMLC 2024)."""

from . import NamedRecipe

RECIPES = {
    dataset: NamedRecipe(
        f"ICMLC 2024, section 4.1: {dataset}, p_k ~ Dir(0.5) over 10 terminals",
        dataset,
        "dir",
        {"beta": 0.5},
    )
    for dataset in ("mnist", "fmnist", "cifar10", "cifar100")
}
