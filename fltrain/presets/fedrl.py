"""Wang, Wang, Pei: FedRL: Federated Learning with Non-IID Data via Review Learning (ICMLC 2024).

There is no authors' code.
"""

from . import Preset, grid, model, option, setting

PAPER = "ICMLC 2024, section 4.1"
TUNED = "ICMLC 2024, section 4.2: the best of the range searched"
UNSAID = "not said; as in NIID-Bench's code"
SMALL = ("mnist", "fmnist")
CIFAR = {"source": ("cifar10", "cifar100")}

PRESET = Preset(
    about="Wang, Wang, Pei, ICMLC 2024 (FedRL)",
    sources=(*SMALL, "cifar10", "cifar100"),
    rows=(
        model(
            "cnn-fedrl",
            f"{PAPER}: two convolutions, two poolings, two linear layers; "
            "their widths are not said",
            source=SMALL,
        ),
        model(
            "cnn", f"{PAPER}: two convolutions, two poolings, three linear layers", source="cifar10"
        ),
        model("resnet50", PAPER, source="cifar100"),
        setting("rounds", 120, PAPER),
        setting(
            "rounds", 100, f"{PAPER}: 300 local epochs, here 100 rounds of 3", algorithm="solo"
        ),
        setting("local_epochs", 3, PAPER),
        setting("batch_size", 32, PAPER),
        setting("lr", 0.01, PAPER),
        setting("lr_drops", (40, 80), f"{PAPER}: in the 40th and the 80th round; here after them"),
        setting(
            "lr_drops",
            (33, 67),
            "said for communication only; "
            "here after the same thirds of the epochs, 99 and 201 of 300",
            algorithm="solo",
        ),
        setting("momentum", 0.0001, f"{PAPER}, as printed"),
        setting("weight_decay", 1e-5, PAPER),
        setting("fraction", 1.0, "ICMLC 2024, Algorithm 1: all terminals"),
        setting("shuffle", False, f"{PAPER}: the terminals do not shuffle"),
        setting("normalise", "none", UNSAID),
        setting("normalise", "cifar100", UNSAID, source="cifar100"),
        setting("crop", 0, UNSAID),
        setting("crop", 4, UNSAID, **CIFAR),
        setting("pad", "zero", UNSAID),
        setting("pad", "reflect", UNSAID, source="cifar10"),
        setting("flip", False, UNSAID),
        setting("flip", True, UNSAID, **CIFAR),
        setting("rotate", 0.0, UNSAID),
        setting("rotate", 15.0, UNSAID, source="cifar100"),
        option("fedrl", "mu", 0.005, TUNED, source="mnist"),
        option("fedrl", "mu", 0.004, TUNED, source="fmnist"),
        option("fedrl", "mu", 0.001, TUNED, source="cifar10"),
        option("fedrl", "mu", 0.0001, TUNED, source="cifar100"),
        option(
            "fedrl",
            "schedule",
            "batch",
            "ICMLC 2024, Algorithm 1; the introduction has it once a round",
        ),
        option(
            "fedrl",
            "norm",
            "mean_l2",
            "ICMLC 2024, Algorithm 1: the 2-norm, not squared; its mean over the batch is ours",
        ),
        grid(
            "mu",
            (0.0001, 0.01),
            "ICMLC 2024, section 4.2: the ends of the range searched",
            algorithm="fedrl",
        ),
    ),
    notes=(
        "FedProx's mu was tuned for each data set and is not given: --mu, else its default.",
        "The accuracies printed are the best over all rounds, not the last; "
        "SOLO's is its end point.",
    ),
)
