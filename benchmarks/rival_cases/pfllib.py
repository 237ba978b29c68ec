"""PFLlib's quick start on MNIST."""

from . import Case, Place, Reading, Side

__all__ = ["CASE"]

ROUNDS, SMALL = 5, 2  # it divides by the rounds after the first


def _sides(place: Place) -> list[Side]:
    # it reads and writes beside its scripts
    dataset, system = place.checkout / "dataset", place.checkout / "system"
    asked = SMALL if place.small else ROUNDS
    options = f"-data MNIST -m CNN -algo FedAvg -gr {asked - 1} -dev cpu"
    generate = place.launch(dataset / "generate_MNIST.py", "noniid", "-", "dir")
    serial = Side(
        name="pfllib",
        command=place.launch(system / "main.py", *options.split()),
        folder=system,
        reading=Reading(
            began=r"Finished creating server and clients",
            ended=r"time cost -+",
            accuracy=r"Averaged Test Accuracy: ([\d.]+)",
        ),
        steps=(generate,),
        preparing=dataset,
        links=((place.data / "MNIST", dataset / "MNIST" / "rawdata" / "MNIST"),),
        environment={"OMP_NUM_THREADS": str(place.cores)},
    )
    return [serial]


def _split(small: bool) -> str:
    del small  # it is made in a moment
    return "--dataset mnist --strategy dir --beta 0.1 --parties 20 --pool --test 0.25"


def _run(small: bool) -> str:
    return f"--preset pfllib --rounds {SMALL if small else ROUNDS}"


CASE = Case(
    name="pfllib",
    repository="PFLlib",
    commit="d832e76",
    python="python3.11",
    packages=(
        "torchvision==0.28.0",
        "scikit-learn",
        "h5py",
        "ujson",
        "matplotlib",
        "cvxpy",
        "calmsize",
    ),
    work=f"MNIST's 70,000 images, Dir(0.1) among 20 parties, a quarter of each for its tests, "
    f"{ROUNDS} of 2,000 rounds of one local epoch, batch 10, its CNN of 582,026 parameters, "
    "lr 0.005",
    differs="It has no package; the code is that of the checkout. Before each round it measures all "
    "parties' training and test rows, and its last accuracy is that before the last round. A party "
    "drops its last short batch, and its images lie in memory as float32.",
    sides=_sides,
    split=_split,
    run=_run,
)
