"""BlazeFL's benchmark, and the same work on Flower, which BlazeFL's authors compare with."""

from . import Case, Place, Reading, Side

__all__ = ["CASE"]


def _sides(place: Place) -> list[Side]:
    quickstart = place.checkout / "examples" / "quickstart-fedavg"
    rounds = ("--global-round", 1, "--epochs", 1) if place.small else ()
    arguments = (
        "--execution-mode=MULTI_PROCESS",
        f"--num-parallels={place.cores}",
        "--dataset-root-dir",
        place.folder,
        "--state-dir-base",
        place.folder / "state",
        *rounds,
    )
    script = place.checkout / "benchmarks" / "blazefl-case" / "main.py"
    batches = "cifar-10-batches-py"
    processes = Side(
        name=f"blazefl, {place.cores} processes",
        command=place.launch(script, *arguments),
        folder=place.folder,
        reading=Reading(
            ended=r"round: \d+, ",
            accuracy=r"round: .*acc\w*: ([\d.]+)",
            seconds=r"BENCHMARK_RESULT_TIME: ([\d.]+)",
        ),
        links=((place.data / batches, place.folder / batches),),
        environment={"PYTHONPATH": str(quickstart), "OMP_NUM_THREADS": "1"},
    )
    return [processes]


def _split(small: bool) -> str:
    del small  # it is made in a moment
    return "--dataset cifar10 --strategy shards --parties 100"


def _run(small: bool) -> str:
    length = "--rounds 1 --local-epochs 1" if small else "--rounds 5 --local-epochs 5"
    return (
        f"--model cnn {length} --batch-size 50 --lr 0.1 --momentum 0 --normalise half --crop 4 "
        "--flip"
    )


CASE = Case(
    name="blazefl",
    repository="blazefl",
    commit="a6e27cb",
    python="python3.12",
    packages=("blazefl[contrib,reproducibility]==2.0.2", "torchvision==0.28.0", "typer"),
    work="CIFAR-10, 100 parties of two shards, all in each round, 5 rounds of 5 local epochs, batch "
    "50, a CNN of 62,006 parameters, lr 0.1; crops and mirrored images",
    differs="Its fastest mode, threads without a global lock, needs a free-threaded Python, and its "
    "script refuses to run it on another; so processes are measured. A DataLoader transforms image "
    "by image. Each worker reads its party's file again in each round. It writes no checkpoints.",
    sides=_sides,
    split=_split,
    run=_run,
)
