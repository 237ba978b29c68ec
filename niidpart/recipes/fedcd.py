"""Kopparapu, Lin, Zhao: FedCD: Improving Performance in non-IID Federated Learning (2020).

CIFAR-10's training and test images together, of which the strategies make the pools of 40,000,
10,000 and 10,000. The paper's sizes are 5,000, 1,666 and 500 a device; disjoint pools allow 5,000,
1,430 and 500 (hierarchical) and 4,567, 1,079 and 456 (hypergeometric).
"""

from . import NamedRecipe

POOL = {"pool": True}
RECIPES = {
    "hierarchical": NamedRecipe(
        "FedCD 2020, section 3.2: 10 archetypes in 2 meta-archetypes, 3 devices each",
        "cifar10",
        "hierarchical",
        n_parties=30,
        source=POOL,
    ),
    "hypergeometric": NamedRecipe(
        "FedCD 2020, section 3.3: 6 archetypes, 5 devices each",
        "cifar10",
        "hypergeometric",
        n_parties=30,
        source=POOL,
    ),
    "hypergeometric-drop": NamedRecipe(
        "FedCD 2020, section 3.3, as the authors' code: images of an eleventh label are left out",
        "cifar10",
        "hypergeometric",
        {"overflow": "drop"},
        n_parties=30,
        source=POOL,
    ),
}
