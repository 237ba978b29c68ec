"""Cha, Chang: Addressing Non-IID with Data Quantity Skew in Federated Learning (Information 2025).

The optimiser stands only in the authors' code, which has the baselines and not the method itself.
"""

from . import Preset, grid, model, option, setting

PAPER = "Information 2025, section 4"
CODE = "authors' code"

PRESET = Preset(
    about="Cha, Chang, Information 2025 (FedMOC)",
    sources=("mnist", "cifar10"),
    rows=(
        model(
            "twonn",
            f"{PAPER}: two layers, 1,000 hidden units, for every algorithm; "
            f"the {CODE} has LeNet-5 and FedNACA's own network",
        ),
        setting("rounds", 100, f"{PAPER}.1"),
        setting("local_epochs", 5, CODE),
        setting("batch_size", 32, CODE),
        setting("lr", 0.01, f"{CODE}: all but FedAvg and FedNACA"),
        setting(
            "lr",
            0.01,
            f"as its baselines have it: the {CODE} lacks the method itself",
            algorithm="fedmoc",
        ),
        setting("lr", 0.02, f"{CODE}: FedAvg", algorithm="fedavg"),
        setting("lr", 5e-4, f"{CODE}: FedNACA", algorithm="fednaca"),
        setting("lr_drops", (), f"{CODE}: none"),
        setting("momentum", 0.0, CODE),
        setting("momentum", 0.9, f"{CODE}: FedNACA", algorithm="fednaca"),
        setting("weight_decay", 0.0, CODE),
        setting("fraction", 1.0, f"{PAPER}.2: one of three; see the grid"),
        setting("shuffle", True, CODE),
        setting("normalise", "mnist-map", CODE, source="mnist"),
        setting("normalise", "cifar10-map", CODE, source="cifar10"),
        setting("crop", 0, f"{CODE}: no augmentation"),
        setting("flip", False, f"{CODE}: no augmentation"),
        setting("rotate", 0.0, f"{CODE}: no augmentation"),
        option("fedprox", "mu", 0.2, f"{PAPER}; the {CODE} has 0.01, of a term that is always 0"),
        option("moon", "mu", 5.0, CODE),
        option("moon", "temperature", 0.5, CODE),
        option("moon", "projection", 0, f"{CODE}: no head, the last hidden layer's output"),
        option("fedmoc", "a0", 1.0, "Information 2025, section 3.3: from 1 to 4"),
        option("fedmoc", "beta0", 0.01, "Information 2025, section 3.3"),
        option("fedmoc", "beta1", 1.0, "Information 2025, section 3.3"),
        option(
            "fedmoc",
            "branch",
            "quotient",
            "Information 2025, section 3.3: a reading, the formula cannot be read with certainty",
        ),
        option(
            "fedmoc",
            "coefficients",
            "disjoint",
            "ours: the conditions of section 3.4 exclude each other but for disjoint supports",
        ),
        grid("fraction", (0.2, 0.5, 1.0), f"{PAPER}.2"),
        grid(
            "a0",
            (1.0, 4.0),
            "Information 2025, section 3.3: the ends of the range",
            algorithm="fedmoc",
        ),
    ),
    notes=(
        "The columns FedProx, SCAFFOLD and FedNACA of the paper's Table 1 come from code "
        "with faults (a term that is 0, controls that are not kept, a larger network): no targets.",
        "Test accuracy is over the parties' own test parts, as "
        "`niidpart make --recipe map004/...` deals them.",
    ),
)
