"""pfl-research's CIFAR-10 task: 1,000 users, 50 a round."""

from pathlib import Path

from . import Case, Place, Reading, Side

__all__ = ["CASE"]

ROUNDS, SMALL = 50, 2


def _sides(place: Place) -> list[Side]:
    folder = place.checkout / "benchmarks"
    images = folder / "image_classification"
    prepare = folder / "dataset" / "cifar10" / "download_preprocess.py"
    command = place.launch(
        images / "pytorch" / "train.py",
        "--args_config",
        images / "configs" / "baseline.yaml",
        "--data_path",
        place.folder,
        "--central_num_iterations",
        SMALL if place.small else ROUNDS,
    )
    archive = "cifar-10-python.tar.gz"
    ranks = (*map(str, (place.python, Path(__file__).with_name("ranks.py"), place.cores)), *command)

    def side(name: str, words: tuple[str, ...], threads: int) -> Side:
        return Side(
            name=name,
            command=words,
            folder=place.folder,
            reading=Reading(
                began=r"using algorithm parameters",
                ended=r"Metrics at iteration \d+",
                accuracy=r"Central val \| accuracy +: ([\d.]+)",
            ),
            steps=(place.launch(prepare, "--output_dir", place.folder),),
            links=((place.data / archive, place.folder / "raw_data" / archive),),
            environment={"PYTHONPATH": str(folder), "OMP_NUM_THREADS": str(threads)},
        )

    one = side(f"pfl, 1 process of {place.cores} threads", command, place.cores)
    several = side(f"pfl, {place.cores} processes", ranks, 1)
    return [one, several]


def _split(small: bool) -> str:
    del small  # it is made in a moment
    return "--dataset cifar10 --strategy homo --parties 1000"


def _run(small: bool) -> str:
    return f"--preset pflresearch --rounds {SMALL if small else ROUNDS}"


CASE = Case(
    name="pfl",
    repository="pfl-research",
    commit="c9d1f32",
    python="python3.11",
    packages=("pfl==0.6.0", "torchvision==0.28.0", "PyYAML", "urllib3"),
    work=f"CIFAR-10, 1,000 parties of 50 images, 50 a round, {ROUNDS} of its 1,500 rounds of one "
    "local epoch, batch 10, its CNN of 1,626,442 parameters with dropout, lr 0.1; evaluated every "
    "ten rounds",
    differs="Its script reads CIFAR-10's three planes as if they were pixels in a row, so its network sees other "
    "images than ours, and its accuracy is another task's. It does not shuffle. In the "
    "first round it measures all 50 users before and after training. It writes no checkpoints.",
    sides=_sides,
    split=_split,
    run=_run,
)
