"""What the exact sum of an upload costs: nanoseconds of a processor a parameter, the sides in turn.

    python benchmarks/sums.py [--sizes 44426,1000000,10000000] [--repeats 9]

"at once" does each operation of the two-sum on the whole tensor, as fltrain did up to commit 08f94e8; "blocks" is what every engine does, "native" what
compiled code does. All of them must give the same bits. One thread.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from fltrain.engine.native.build import load_library
from fltrain.engine.native.sums import make_add_pair
from fltrain.engine.sums import two_sum


def add_at_once(high: Tensor, low: Tensor, value: Tensor) -> None:
    """The two-sum on whole tensors."""
    total = high + value
    added = total - high
    low += (high - (total - added)) + (value - added)
    high.copy_(total)


def measure(
    sides: dict[str, Callable[[Tensor, Tensor, Tensor], None]], n: int, repeats: int
) -> dict[str, list[float]]:
    """Return the nanoseconds a parameter of each side and turn."""
    value = torch.randn(n, dtype=torch.float64)
    pairs = {side: (torch.zeros_like(value), torch.zeros_like(value)) for side in sides}
    taken: dict[str, list[float]] = {side: [] for side in sides}
    calls = max(1, 2_000_000 // n)
    for _ in range(repeats):
        for side, add in sides.items():
            before = time.thread_time()
            for _ in range(calls):
                add(*pairs[side], value)
            taken[side].append((time.thread_time() - before) / calls / n * 1e9)
    (high, low), *others = pairs.values()
    for other in others:
        if not (torch.equal(high, other[0]) and torch.equal(low, other[1])):
            raise SystemExit("the sides differ")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="44426,1000000,10000000")
    parser.add_argument("--repeats", type=int, default=9)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sides = {"at once": add_at_once, "blocks": two_sum, "native": make_add_pair(load_library())}
    print(f"torch {torch.__version__}, {asked.repeats} turns\n")
    print("| parameters | " + " | ".join(sides) + " |")
    print("| --- |" + " --- |" * len(sides))
    for n in map(int, asked.sizes.split(",")):
        cells = []
        for seconds in measure(sides, n, asked.repeats).values():
            middle = statistics.median(seconds)
            cells.append(f"{middle:.2f} ({min(seconds):.2f} to {max(seconds):.2f})")
        print(f"| {n:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
