"""Li, Diao, Chen, He: Federated Learning on Non-IID Data Silos: An Experimental Study.

ICDE 2022, NIID-Bench. The paper's text where it speaks, the authors' code where it does not. MOON,
CIFAR-100, VGG and ResNet-50 are not in the paper's Table III.
"""

from . import Preset, grid, model, option, setting

PAPER = "ICDE 2022, section V"
CODE = "authors' code"
GRAY, COLOUR, TABLES = (
    ("mnist", "fmnist", "femnist"),
    ("cifar10", "svhn"),
    ("adult", "rcv1", "covtype"),
)
DEEP = ("vgg9", "vgg11", "resnet50")
CIFAR = {"source": ("cifar10", "cifar100")}

PRESET = Preset(
    about="Li, Diao, Chen, He, ICDE 2022 (NIID-Bench)",
    sources=(*GRAY, *COLOUR, "cifar100", *TABLES, "fcube"),
    rows=(
        model(
            "cnn",
            f"{PAPER}: images, two convolutions with pooling and two hidden layers of 120 and 84",
            source=(*GRAY, *COLOUR),
        ),
        model("cnn", f"{CODE}; the paper has no CIFAR-100", source="cifar100"),
        model("mlp", f"{PAPER}: tables, hidden layers of 32, 16 and 8", source=TABLES),
        model(
            "linear", f"{CODE}, 8 parameters; the text says the MLP of the tables", source="fcube"
        ),
        setting("rounds", 50, f"{PAPER}, benchmark metrics"),
        setting("rounds", 100, f"leaderboard of the {CODE}: VGG and ResNet", model=DEEP),
        setting("rounds", 500, f"leaderboard of the {CODE}: 100 parties", parties=100),
        setting("local_epochs", 10, PAPER),
        setting("batch_size", 64, PAPER),
        setting("lr", 0.01, f"{PAPER}: tuned from 0.1, 0.01, 0.001"),
        setting("lr", 0.1, f"{PAPER}: rcv1", source="rcv1"),
        setting("lr_drops", (), f"{CODE}: none"),
        setting("momentum", 0.9, PAPER),
        setting("weight_decay", 1e-5, f"{CODE}; the text has none"),
        setting("fraction", 1.0, f"{PAPER}: all parties"),
        setting("fraction", 0.1, f"{PAPER}-D: a tenth of 100 parties", parties=100),
        setting("shuffle", True, CODE),
        setting("normalise", "none", f"{CODE}: pixels to 0..1, CIFAR-10 too"),
        setting("normalise", "cifar100", CODE, source="cifar100"),
        setting("crop", 0, f"{CODE}: no crop but for CIFAR"),
        setting("crop", 4, f"{CODE}: a random crop after padding by 4", **CIFAR),
        setting("pad", "zero", f"{CODE}, CIFAR-100; without a crop nothing is padded"),
        setting("pad", "reflect", f"{CODE}, CIFAR-10", source="cifar10"),
        setting("flip", False, f"{CODE}: no flip but for CIFAR"),
        setting("flip", True, CODE, **CIFAR),
        setting("rotate", 0.0, f"{CODE}: no rotation but for CIFAR-100"),
        setting("rotate", 15.0, f"{CODE}, CIFAR-100", source="cifar100"),
        setting("noisy_test", False, f"{PAPER}: the test set as it is"),
        setting(
            "noisy_test",
            True,
            f"{CODE}: with noise, the test set once for each party's noise",
            transforms=("noise", "noise-space"),
            own_test=True,
        ),
        option(
            "fedprox",
            "mu",
            0.01,
            "neither text nor code fixes it: the best on the test set of the grid is printed; "
            "0.01 and 0.001 on the leaderboard",
        ),
        option("scaffold", "option", "ii", f"{CODE}; ICDE 2022, Algorithm 2 offers both"),
        option(
            "scaffold",
            "weights",
            "examples",
            "ICDE 2022, Algorithm 2; SCAFFOLD's own paper weighs all alike",
        ),
        option("moon", "mu", 5.0, "MOON's own code, the example for CIFAR-10", source="cifar10"),
        option("moon", "temperature", 0.5, "MOON's own code"),
        option(
            "moon",
            "projection",
            256,
            f"MOON's own code; the {CODE} of NIID-Bench has no head unless asked for one",
        ),
        grid(
            "mu",
            (0.001, 0.01, 0.1, 1.0),
            "ICDE 2022, Table III; the best on the test set is printed, which is a selection on it",
            algorithm="fedprox",
        ),
        grid("mu", (0.001, 0.01, 0.1, 1.0, 5.0, 10.0), "MOON's own code, readme", algorithm="moon"),
        grid("temperature", (0.1, 0.5, 1.0), "MOON's own code, readme", algorithm="moon"),
        grid("projection", (64, 128, 256), "MOON's own code, readme", algorithm="moon"),
        grid("lr", (0.1, 0.01, 0.001), PAPER),
        grid("local_epochs", (10, 20, 40, 80), f"{PAPER}-C"),
        grid(
            "batch_size",
            (16, 32, 64, 128, 256),
            f"technical report, appendix D: from 16 to 256; the steps by the {CODE}",
        ),
        grid("model", ("vgg9", "resnet50"), "technical report, appendix E", source="cifar10"),
    ),
    notes=(
        "Three trials, seeds 0, 1, 2; the seed changes the split too.",
        "The leaderboard's VGG is VGG-11, the technical report says VGG-9.",
    ),
)
