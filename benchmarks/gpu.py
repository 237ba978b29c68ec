"""Eight minutes on a lent GPU: do the engines agree, and how fast are they.

    python benchmarks/gpu.py [--device cuda|cpu] [--small] [--sections agree,round,...] [--algorithms NAME,...] [--limit 480]

Random data alone, nothing to download. Sections, each with its share of the time: agree (every
algorithm, or those named: stacked and graph beside looped), round (the papers' CNN on 60,000
images, Dir(0.5), 10 parties, batch 64; one and ten local epochs; algorithms beside FedAvg; a sweep
of 12 beside 12 runs), parties (10, 100, 1,000), host (its part of a step), kernels
(torch.profiler), memory (1,000 parties, SCAFFOLD), models, convolution (grouped beside products),
start (of a process, up to its first job).
Prints Markdown, with machine and versions. What fails or does not fit stands in the tables with its
reason. --small: sizes for a CPU in CI. The exit code is 1 where an algorithm disagrees or fails.
"""

import argparse
import time

import torch
from gpu_cases.agreement import agree
from gpu_cases.bench import Bench
from gpu_cases.rounds import measure_memory, time_parties, time_round
from gpu_cases.steps import (
    compare_convolutions,
    list_kernels,
    measure_host,
    time_models,
    time_start,
)

from fltrain.algorithms import ALGORITHMS
from fltrain.environment import describe

SECTIONS = {
    "agree": agree,
    "round": time_round,
    "parties": time_parties,
    "host": measure_host,
    "kernels": list_kernels,
    "memory": measure_memory,
    "models": time_models,
    "convolution": compare_convolutions,
    "start": time_start,
}
SHARES = {
    "agree": 0.2,
    "round": 0.26,
    "parties": 0.16,
    "host": 0.03,
    "kernels": 0.06,
    "memory": 0.06,
    "models": 0.14,
    "convolution": 0.05,
    "start": 0.04,
}


def main() -> int:
    parser = make_parser()
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"there is no section {sorted(unknown)[0]!r}; there are {', '.join(SECTIONS)}")
    here = describe(torch.device(arguments.device))
    print(
        f"{here['device']}, CUDA {here['cuda']}; {here['cpu']}, {here['threads']} threads; "
        f"Python {here['python']}, torch {here['torch']}"
    )
    bench = Bench(arguments.device, arguments.small, arguments.algorithms)
    good, began = True, time.perf_counter()
    whole = sum(SHARES[name] for name in arguments.sections)
    share = 0.0
    for name in arguments.sections:
        share += SHARES[name]  # what a section leaves, the next ones have
        bench.until = began + arguments.limit * share / whole
        print(f"\n## {name}\n\n{SECTIONS[name].__doc__}")
        good &= SECTIONS[name](bench)
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    return 0 if good else 1


def make_parser() -> argparse.ArgumentParser:
    def split_at_commas(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=["cuda", "cpu"], default=default)
    parser.add_argument(
        "--small", action="store_true", help="A five-hundredth of the data, few points."
    )
    parser.add_argument(
        "--sections",
        type=split_at_commas,
        default=list(SECTIONS),
        help=f"Default: {','.join(SECTIONS)}.",
    )
    parser.add_argument(
        "--algorithms",
        type=split_at_commas,
        default=ALGORITHMS.names(),
        metavar="NAMES",
        help="Those that have to agree; default: all.",
    )
    parser.add_argument(
        "--limit", type=float, default=480.0, metavar="SECONDS", help="For all sections together."
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
