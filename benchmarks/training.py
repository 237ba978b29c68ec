"""A FedAvg round of this project beside a plain PyTorch loop, on the same split, in one run.

    python benchmarks/training.py --data-root DIR [--rounds 10]

Both sides train the papers' CNN on MNIST, Dir(0.5), 10 parties, lr 0.01, momentum 0.9, batch 64, one local epoch. The plain side is what one
would write by hand: a module, torch.optim.SGD, shuffled batches of tensors in memory, a weighted mean of state dicts, one evaluation a round.
The rounds of the two take turns, so that both see the same machine. Prints medians, the ratio, accuracies, the machine and the versions.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator

import torch
from torch import nn

import fltrain
import niidpart
from fltrain import models
from fltrain.environment import describe

LR, MOMENTUM, BATCH = 0.01, 0.9, 64


def plain_rounds(split: niidpart.FederatedSplit, data: niidpart.Data, rounds: int) -> Iterator[tuple[float, float, float]]:
    """(seconds, CPU seconds, test accuracy) of each round of the loop that everybody writes."""
    torch.manual_seed(0)
    x = torch.from_numpy(data.features(slice(None)).copy()).unsqueeze(1).float().div_(255)
    y = torch.from_numpy(data.labels)
    x_test = torch.from_numpy(data.test_features(slice(None)).copy()).unsqueeze(1).float().div_(255)
    y_test = torch.from_numpy(data.test_labels)
    parties = [torch.from_numpy(rows.astype("int64")) for rows in split.train]
    n = sum(map(len, parties))
    net = models.create("cnn", (1, 28, 28), 10, seed=0)
    world = {k: v.clone() for k, v in net.state_dict().items()}
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        mean = {k: torch.zeros_like(v) for k, v in world.items()}
        for rows in parties:
            net.load_state_dict(world)
            optimiser = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM)
            net.train()
            order = rows[torch.randperm(len(rows))]
            for i in range(0, len(order), BATCH):
                at = order[i : i + BATCH]
                optimiser.zero_grad()
                nn.functional.cross_entropy(net(x[at]), y[at]).backward()
                optimiser.step()
            for k, v in net.state_dict().items():
                mean[k] += v * (len(rows) / n)
        world = mean
        net.load_state_dict(world)
        net.eval()
        with torch.no_grad():
            right = sum(int((net(a).argmax(1) == b).sum()) for a, b in zip(x_test.split(1000), y_test.split(1000), strict=True))
        yield time.perf_counter() - wall, time.process_time() - cpu, right / len(y_test)


def our_rounds(split: niidpart.FederatedSplit, data: niidpart.Data, rounds: int, turn: Iterator[tuple[float, float, float]]) -> tuple[list, list]:
    """Our rounds, a plain round after each. Returns both lists of (seconds, CPU seconds, test accuracy)."""
    ours, plain = [], []
    clock = [time.perf_counter(), time.process_time()]

    def after(p: fltrain.Progress) -> None:
        if p.metrics is None:
            return
        ours.append((time.perf_counter() - clock[0], time.process_time() - clock[1], p.metrics["test_accuracy"]))
        plain.append(next(turn))
        clock[:] = time.perf_counter(), time.process_time()

    fltrain.run(split, data, rounds=rounds, local_epochs=1, batch_size=BATCH, lr=LR, momentum=MOMENTUM, device="cpu", progress=after)
    return ours, plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    data = niidpart.load("mnist", args.data_root)
    split = niidpart.make(data, "dir", beta=0.5, n_parties=10)
    ours, plain = our_rounds(split, data, args.rounds, plain_rounds(split, data, args.rounds))
    print(json.dumps(describe(torch.device("cpu"))))
    print(f"split {split.digest[:16]}, party sizes {split.train.sizes.min()} to {split.train.sizes.max()}")
    for name, rows in (("fltrain, looped", ours), ("plain PyTorch loop", plain)):
        wall, cpu, accuracy = zip(*rows, strict=True)
        spread = f"{min(wall):.2f} to {max(wall):.2f}"
        times = f"{statistics.median(wall):.2f} s a round ({spread}), {statistics.median(cpu):.2f} CPU s"
        print(f"{name:20} {times}, test accuracy {100 * accuracy[-1]:.2f} %")
    ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, plain, strict=True))
    print(f"ratio of seconds, ours / plain, median over rounds: {ratio:.2f}")


if __name__ == "__main__":
    main()
