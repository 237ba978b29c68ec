"""FedLab's standalone example on MNIST."""

from . import Case, Place, Reading, Side

__all__ = ["CASE"]

ROUNDS, SMALL = 10, 2


def _sides(place: Place) -> list[Side]:
    # the script looks for its data beside itself
    data = place.checkout / "datasets" / "mnist" / "MNIST"
    home = place.checkout / "examples" / "standalone-mnist"
    rounds = SMALL if place.small else ROUNDS
    options = f"--total_clients 100 --com_round {rounds} --sample_ratio 0.1 --batch_size 128"
    command = place.launch(home / "standalone.py", *options.split(), "--epochs", 3, "--lr", 0.1)
    serial = Side(
        name="fedlab",
        command=command,
        folder=home,
        reading=Reading(
            began=r"dataset = torch.load|Training on client",
            ended=r"Round \[\d+/\d+\] test performance",
            accuracy=r"Round .* Acc: ([\d.]+)%",
            percent=True,
        ),
        links=((place.data / "MNIST", data),),
        environment={
            "PYTHONPATH": str(place.checkout),
            "OMP_NUM_THREADS": str(place.cores),
            "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # it was written for an older torch.load
        },
    )
    return [serial]


def _split(small: bool) -> str:
    del small  # it is made in a moment
    return "--dataset mnist --strategy shards --parties 100"


def _run(small: bool) -> str:
    return (
        f"--model MODELS:fedlab_mlp --rounds {SMALL if small else ROUNDS} --cohort-size 1 "
        "--local-epochs 3 --batch-size 128 --lr 0.1 --momentum 0 --no-shuffle"
    )


CASE = Case(
    name="fedlab",
    repository="FedLab",
    commit="92552a7",
    python="python3.11",
    packages=("fedlab==1.3.0", "torchvision==0.28.0", "seaborn"),
    work="MNIST, 100 parties of two shards, 10 rounds of 3 local epochs, batch 128, an MLP of "
    "199,210 parameters, lr 0.1",
    differs="The code is that of the checkout: its example does not run with the 1.3.0 of PyPI. Its "
    "example asks for a tenth of the parties and trains one: the number is taken before it knows "
    "how many there are. Ours trains one as well. It does not shuffle, and neither does ours.",
    sides=_sides,
    split=_split,
    run=_run,
)
