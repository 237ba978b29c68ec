"""fltrain, with the engine that is asked for. A fltrain that has no choice of engines trains one job after another: `looped`."""

from dataclasses import fields

import fltrain
import niidpart
from fltrain.settings import Settings

from .work import BATCH, LR, MOMENTUM, Work

PACKAGE = "niidpart"


def rounds(work: Work, meter) -> None:
    offered = {field.name for field in fields(Settings)}
    if "engine" not in offered and work.engine != "looped":
        raise ValueError(f"this fltrain has no setting for the engine; {work.engine} cannot be asked for")
    how = {"engine": work.engine, "threads": work.processes * work.threads, "device": "cpu"}
    if work.engine == "processes":
        how["workers"] = work.processes

    def progress(p: fltrain.Progress) -> None:
        if p.metrics is not None:
            meter.evaluated(p.metrics["test_accuracy"], p.metrics["test_loss"])
        elif p.job == p.jobs:
            meter.trained()

    fltrain.run(
        work.folder / "split.h5",
        niidpart.load("npz", work.folder / "data.npz"),
        model="cnn",
        rounds=work.n_rounds,
        local_epochs=1,
        batch_size=BATCH,
        lr=LR,
        momentum=MOMENTUM,
        progress=progress,
        **{name: value for name, value in how.items() if name in offered},
    )
