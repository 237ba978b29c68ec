"""Kopparapu, Lin, Zhao: FedCD: Improving Performance in non-IID Federated Learning (2020).

The optimiser stands only in the authors' code.
"""

from . import Preset, grid, model, option, setting

PAPER = "FedCD 2020, section 3.1"
CODE = "authors' code"
CIFAR10 = {"source": "cifar10"}

PRESET = Preset(
    about="Kopparapu, Lin, Zhao, 2020 (FedCD)",
    sources=("cifar10",),
    rows=(
        model("convnet", f"{PAPER}: ten layers; which by the {CODE}", **CIFAR10),
        setting(
            "rounds", 45, "FedCD 2020, Figure 1: hierarchical archetypes; Figure 2 goes on to 150"
        ),
        setting(
            "rounds",
            80,
            "FedCD 2020, Figure 4: hypergeometric archetypes; converged by 50, Table 1",
            strategy="hypergeometric",
        ),
        setting("local_epochs", 3, CODE),
        setting("batch_size", 128, CODE),
        setting("lr", 0.1, CODE),
        setting("lr_drops", (25, 50, 75), CODE),
        setting("momentum", 0.9, CODE),
        setting("weight_decay", 5e-4, CODE),
        setting("fraction", 0.5, f"{PAPER}: 15 of 30 devices"),
        setting("shuffle", True, CODE),
        setting("normalise", "cifar10-fedcd", CODE, **CIFAR10),
        setting("crop", 4, f"{CODE}: a random crop after padding by 4", **CIFAR10),
        setting("pad", "zero", CODE),
        setting("flip", True, CODE, **CIFAR10),
        setting("rotate", 0.0, f"{CODE}: no rotation"),
        option(
            "fedcd",
            "milestones",
            (5, 15, 25, 30),
            f"FedCD 2020, section 3.2; the {CODE} also has 2 for the first",
        ),
        option(
            "fedcd", "bits", 8, f"{CODE}; the text compares widths without numbers (section 3.4)"
        ),
        option("fedcd", "window", 3, "FedCD 2020, section 2, equation 2"),
        option(
            "fedcd",
            "rule",
            "mean",
            f"{CODE}; equation 4 as printed deletes all models of equal score",
        ),
        option("fedcd", "two_models_after", 20, f"FedCD 2020, section 2; the {CODE} has 15"),
        option(
            "fedcd", "two_models_score", 0.3, f"FedCD 2020, section 2; the {CODE} comes to 0.25"
        ),
        grid("rounds", (45, 80, 150), "FedCD 2020, Figures 1, 4 and 2"),
    ),
    notes=(
        "The paper's 40,000, 10,000 and 10,000 images are disjoint only by "
        "`niidpart make --recipe fedcd/...`; the authors' code draws training and validation "
        "from the same images.",
    ),
)
