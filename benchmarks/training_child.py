"""One measurement for training.py, run by the python that has the library:

    training_child.py PEER ENGINE FOLDER OUT ROUNDS PROCESSES THREADS PORT

Trains with peers/PEER.py on FOLDER/data.npz and writes to OUT, as JSON, what each round took: seconds of training and of evaluation, CPU seconds of
this process and all that it started, cores that others used meanwhile, test accuracy and loss. The first
round counts from before the library sets anything up, its import aside.
"""

import importlib
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch
from peers.work import Work
from process_tree import cpu_seconds, machine_seconds


class Meter:
    """Told by a side when it has trained and when it has evaluated. port: the first of those that processes may meet at."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.rounds: list[dict[str, float]] = []
        self.began = self.half = time.perf_counter()
        self.cpu, self.machine = cpu_seconds(os.getpid()), machine_seconds()

    def trained(self) -> None:
        self.half = time.perf_counter()

    def evaluated(self, accuracy: float, loss: float) -> None:
        now, cpu, machine = time.perf_counter(), cpu_seconds(os.getpid()), machine_seconds()
        others = (machine - self.machine - (cpu - self.cpu)) / (now - self.began)
        measured = {
            "train": self.half - self.began,
            "evaluate": now - self.half,
            "cpu": cpu - self.cpu,
            "others": max(others, 0.0),
        }
        self.rounds.append(measured | {"accuracy": float(accuracy), "loss": float(loss)})
        self.began = self.half = time.perf_counter()
        self.cpu, self.machine = cpu, machine


def main() -> None:
    peer, engine, folder, out = sys.argv[1:5]
    n_rounds, processes, threads, port = map(int, sys.argv[5:])
    torch.set_num_threads(threads)
    side = importlib.import_module(f"peers.{peer}")
    work = Work.read(Path(folder), engine, n_rounds, processes, threads)
    meter = Meter(port)
    side.rounds(work, meter)
    if os.environ.get("PFL_WORKER_RANK", "0") == "0":  # pfl's further processes run this very file
        said = {
            "rounds": meter.rounds,
            "package": side.PACKAGE,
            "version": version(side.PACKAGE),
            "torch": torch.__version__,
        }
        Path(out).write_text(json.dumps(said))


if __name__ == "__main__":
    main()
