"""What rounds take: algorithms, local epochs, sweeps, numbers of parties, memory."""

from typing import Any

import fltrain

from .bench import ENGINES, Bench, deal, deal_papers, prepare_run, print_head

BESIDE = ("fedprox", "scaffold", "fednova", "moon", "fedrl")


def time_round(bench: Bench) -> bool:
    """The rows of the target table that are about a round."""
    split, data = deal_papers(bench)
    width = print_head(
        "the round",
        "engine",
        "training, s",
        "mean and evaluation, s",
        "evaluation of the round, %",
        "peak MB",
        "times FedAvg",
    )
    usual: dict[str, float] = {}

    def measure(engine: str, against: str, **fixed: Any) -> list[Any]:
        got = bench.time_rounds(prepare_run(split, data, engine=engine, **fixed))
        usual.setdefault(against, got.train)
        share = 100 * got.rest / (got.train + got.rest)
        times = got.train / usual[against]
        return [engine, got.train, got.rest, share, got.megabytes, times]

    for engine in ENGINES:
        bench.print_row("FedAvg", lambda engine=engine: measure(engine, engine), width)
    for engine in ENGINES[1:]:
        for name in BESIDE[:2] if bench.small else BESIDE:
            bench.print_row(
                name,
                lambda engine=engine, name=name: measure(engine, engine, algorithm=name),
                width,
            )
    epochs = bench.size(10, 2)
    bench.print_row(
        f"FedAvg, {epochs} local epochs",
        lambda: measure("graph", "many epochs", local_epochs=epochs),
        width,
    )
    _time_sweep(bench)
    return True


def _time_sweep(bench: Bench) -> None:
    split, data = deal_papers(bench)
    width = print_head(
        "sweep of FedProx over mu and seeds",
        "seconds a round of all",
        "runs",
        "times as fast as one by one",
    )
    mus, trials = ([0.01, 0.1], 1) if bench.small else ([0.001, 0.01, 0.1, 1.0], 3)
    grid, runs = {"mu": mus}, len(mus) * trials

    def measure(engine: str) -> list[Any]:
        fixed = {"algorithm": "fedprox", "model": "cnn", "engine": engine}
        one = bench.time_rounds(prepare_run(split, data, **fixed), rounds=3)
        settings = {**fixed, "local_epochs": 1, "grid": grid, "trials": trials}
        many = bench.time_rounds(
            lambda **given: fltrain.sweep(split, data, **settings | given), rounds=3
        )
        together = many.train + many.rest
        return [together, runs, runs * (one.train + one.rest) / together]

    for engine in ENGINES[1:]:
        bench.print_row(engine, lambda engine=engine: measure(engine), width)


def time_parties(bench: Bench) -> bool:
    """The same examples at more and more parties."""
    width = print_head(
        "parties",
        "engine",
        "training, s",
        "ms a step of all parties",
        "mean and evaluation, s",
        "peak MB",
    )
    n, batch = bench.size(60_000, 120), 64

    def measure(engine: str, parties: int) -> list[Any]:
        split, data = deal(n, (28, 28), parties, "homo")
        run = prepare_run(split, data, engine=engine, batch_size=batch)
        got = bench.time_rounds(run, rounds=3)
        steps = -(-n // parties // batch)
        return [engine, got.train, 1000 * got.train / steps, got.rest, got.megabytes]

    for parties in (4,) if bench.small else (10, 100, 1000):
        for engine in ENGINES:
            bench.print_row(
                f"{parties:,}",
                lambda engine=engine, parties=parties: measure(engine, parties),
                width,
            )
    return True


def measure_memory(bench: Bench) -> bool:
    """Many parties that each keep something."""
    parties = bench.size(1000, 20)
    split, data = deal(bench.size(60_000, 120), (28, 28), parties, "homo")
    width = print_head(f"{parties:,} parties, SCAFFOLD", "training, s", "peak MB", "said before")

    def measure(engine: str) -> list[Any]:
        run = prepare_run(split, data, engine=engine, algorithm="scaffold")
        got = bench.time_rounds(run, rounds=2)
        return [got.train, got.megabytes, got.told]

    for engine in reversed(ENGINES):
        bench.print_row(engine, lambda engine=engine: measure(engine), width)
    return True
