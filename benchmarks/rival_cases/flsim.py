"""FL-Simulator's round: ResNet-18 with group norm, 10 of 100 parties of CIFAR-10."""

from . import Case, Place, Reading, Side

__all__ = ["CASE"]


def _sides(place: Place) -> list[Side]:
    batches = "cifar-10-batches-py"
    options = (
        "--non-iid --dataset CIFAR10 --model ResNet18 --split-rule Dirichlet --split-coef 0.6 "
        "--active-ratio 0.1 --comm-rounds 1"
    )
    length = "--total-client 10 --local-epochs 1" if place.small else "--total-client 100"
    command = place.launch(
        place.checkout / "train.py",
        *options.split(),
        *length.split(),
    )
    serial = Side(
        name="flsim",
        command=command,
        folder=place.folder,
        reading=Reading(
            began=r"Selected Clients",
            ended=r"---- +Time: [\d.]+s",
            seconds=r"---- +Time: ([\d.]+)s",
            accuracy=r"^ +Test .*Accuracy: ([\d.]+)",
        ),
        links=((place.data / batches, place.folder / "Data" / "Raw" / batches),),
        environment={"OMP_NUM_THREADS": str(place.cores)},
    )
    return [serial]


def _split(small: bool) -> str:
    parties = 10 if small else 100
    return f"--dataset cifar10 --strategy dir-balanced --beta 0.6 --parties {parties}"


def _run(small: bool) -> str:
    # its parties are drawn by chance: with its seed seven of 100, and one of 10, in the first round
    short = "--cohort-size 1 --local-epochs 1" if small else "--cohort-size 7"
    return f"--preset fedsim --model MODELS:resnet18_gn_large --rounds 1 {short}"


CASE = Case(
    name="flsim",
    repository="FL-Simulator",
    commit="502bec6",
    python="python3.11",
    packages=("torchvision==0.28.0", "scikit-learn", "scipy"),
    work="CIFAR-10, 100 parties of 500 images, Dirichlet 0.6, about a tenth of them (seven) for one round of 5 "
    "local epochs, batch 50, ResNet-18 with group norm and the stem for large images "
    "(11,181,642 parameters), crops and mirrored images",
    differs="After the round it measures the 50,000 training images too. A DataLoader transforms "
    "image by image. Its splits drop some images and hold others twice.",
    sides=_sides,
    split=_split,
    run=_run,
    engines=("auto",),
)
