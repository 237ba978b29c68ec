"""How often the 95 % interval of a measure of skew holds the proportions that a split was dealt by.

    python benchmarks/skew_coverage.py run --out coverage.jsonl [--repetitions 1000] [--strategies dir,labels] [--parties 10,100] [--rows 60,600] [--betas 0.1,0.5,5] [--workers 2]
    python benchmarks/skew_coverage.py table coverage.jsonl

`run` makes splits of ten equal classes by each strategy, seed 0, 1, ..., measures them as `niidpart show` does, and compares with the truth
(`skew_truths.py`). It adds a line to the results for each 25 repetitions; what stands there already is not run again, so it can be stopped and
started, and all settings advance together. `table` prints the table of docs/heterogeneity.md: of each setting the least coverage of all ten
measures of labels, which one that is, the coverage of MAP beta, and how many repetitions there were.
"""

import argparse
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from skew_truths import HAVE_BETA, MAKERS, Case, Floats, Known, make_known

from niidpart.arithmetic.rng import stream
from niidpart.heterogeneity import measure
from niidpart.heterogeneity.means import average_over_pairs, average_over_parties, scale_mean
from niidpart.heterogeneity.measuring import find_beta_interval, renumber_moves
from niidpart.heterogeneity.rounding import RoundingEvidence
from niidpart.heterogeneity.tables import PartyCounts

ENDLESS = Case(
    "niidbench", 100, 60, 0.1
)  # no draw gives each party 10 examples, and the published function goes on drawing
BATCH = 25  # repetitions of a line
CLOSE = 1e-9  # what a sum of floats is off by; where all is exact, low is high
Line = dict[str, Any]


def count_hits(case: Case, first: int) -> Line:
    """Measure a batch of splits: a line of the results."""
    hits: Counter[str] = Counter()
    for seed in range(first, first + BATCH):
        known = make_known(case, seed)
        for name, (low, high, truth) in _list_intervals(known).items():
            hits[name] += low - CLOSE <= truth <= high + CLOSE
    return {"case": case._asdict(), "first": first, "repetitions": BATCH, "hits": hits}


def _list_intervals(known: Known) -> dict[str, tuple[float, float, float]]:
    """(low, high, truth) by the name of the measure."""
    truths = {} if known.truth is None else _evaluate(known.truth)
    found = {}
    for name, (low, high) in find_intervals(known).items():
        found[name] = (low, high, truths.get(name, 0.0))
    if known.beta is not None:
        found["MAP beta"] = (*find_beta_interval(known.counts, known.reading), known.beta)
    return found


def find_intervals(known: Known) -> dict[str, tuple[float, float]]:
    """The intervals of `niidpart.heterogeneity.measure`: of a sample by it, of proportions without the IID deals, which take longest and play no part."""
    found = {}
    if known.reading == "sample":
        for m in measure(known.counts, "sample", known.moves).measures:
            if m.low is not None and m.high is not None:
                found[f"{m.name} {m.form}".strip()] = (m.low, m.high)
        return found
    table = PartyCounts.of(known.counts)
    pairs = average_over_pairs(table, stream(0, "heterogeneity", "pairs"))
    point = average_over_parties(table) | pairs.means
    moves = renumber_moves(known.moves, known.counts.any(axis=1))
    is_rough = known.reading != "proportions"
    evidence = RoundingEvidence.collect(table, point, pairs, moves, is_rough=is_rough)
    for key in point:
        _, low, high = evidence.estimate(key)
        found[f"{key.name} {key.form}".strip()] = (low, high)
    return found


def _evaluate(shares: Floats) -> dict[str, float]:
    """Every measure of labels of parties with these shares [P, K]."""
    sizes, total = shares.sum(axis=1), shares.sum()
    table = PartyCounts(shares, sizes, shares.sum(axis=0) / total, sizes / total)
    means = average_over_parties(table) | average_over_pairs(table, stream(0, "truth")).means
    values = {}
    for key, mean in means.items():
        values[f"{key.name} {key.form}".strip()] = scale_mean(key, mean, table.g, table.w)
    return values


def list_cases(args: argparse.Namespace) -> Iterator[Case]:
    for strategy in args.strategies.split(","):
        betas = args.betas.split(",") if strategy in HAVE_BETA else [None]
        for n_parties in args.parties.split(","):
            for n in args.rows.split(","):
                for beta in betas:
                    number = None if beta is None else float(beta)
                    case = Case(strategy, int(n_parties), int(n), number)
                    if case != ENDLESS:
                        yield case


def run(args: argparse.Namespace) -> None:
    out = Path(args.out)
    done = (
        {(json.dumps(line["case"]), line["first"]) for line in read(out)} if out.exists() else set()
    )
    todo = [
        (case, first)
        for first in range(0, args.repetitions, BATCH)
        for case in list_cases(args)
        if (json.dumps(case._asdict()), first) not in done
    ]
    print(f"{len(todo)} batches of {BATCH} repetitions to run, {len(done)} are there", flush=True)
    with ProcessPoolExecutor(args.workers) as pool:
        for future in as_completed([pool.submit(count_hits, *batch) for batch in todo]):
            with out.open("a") as f:
                f.write(json.dumps(future.result()) + "\n")


def read(path: Path) -> list[Line]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def table(args: argparse.Namespace) -> None:
    """A row for each strategy and beta, a column for each number of parties and rows."""
    repetitions: Counter[Case] = Counter()
    hits: dict[Case, Counter[str]] = defaultdict(Counter)
    for line in read(Path(args.results)):
        case = Case(**line["case"])
        repetitions[case] += line["repetitions"]
        hits[case].update(line["hits"])
    columns = sorted({(case.n_parties, case.n) for case in hits})
    head = ["strategy", "beta", *(f"{n_parties} parties of {n}" for n_parties, n in columns)]
    print(_format([*head, "MAP beta", "repetitions"]), _format(["---"] * (len(head) + 2)), sep="\n")
    order = list(MAKERS)
    for strategy, beta in sorted(
        {(c.strategy, c.beta) for c in hits}, key=lambda row: (order.index(row[0]), row[1] or 0)
    ):
        cases = [Case(strategy, *column, beta) for column in columns]
        cells = [
            _say_least(hits[case], repetitions[case]) if case in hits else "-" for case in cases
        ]
        cases = [case for case in cases if case in hits]
        betas = [
            100 * hits[case]["MAP beta"] / repetitions[case]
            for case in cases
            if "MAP beta" in hits[case]
        ]
        name = f"`{strategy}`" if strategy != "a sample" else "a multinomial sample"
        said = [
            name,
            "" if beta is None else f"{beta:g}",
            *cells,
            ", ".join(f"{share:.0f}" for share in betas),
        ]
        print(_format([*said, f"{min(repetitions[case] for case in cases):,}"]))


def _say_least(hits: Counter[str], n: int) -> str:
    """The least share of all measures, in %, and whose it is."""
    shares = {name: hits[name] / n for name in hits if name != "MAP beta"}
    name = min(shares, key=lambda name: shares[name])
    return f"{100 * shares[name]:.1f} ({name})"


def _format(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--out", required=True)
    runs.add_argument("--repetitions", type=int, default=1000)
    runs.add_argument("--strategies", default=",".join(MAKERS))
    runs.add_argument("--parties", default="10,100")
    runs.add_argument("--rows", default="60,600")
    runs.add_argument("--betas", default="0.1,0.5,5")
    runs.add_argument("--workers", type=int, default=2)
    runs.set_defaults(do=run)
    tables = commands.add_parser("table")
    tables.add_argument("results")
    tables.set_defaults(do=table)
    args = parser.parse_args()
    args.do(args)


if __name__ == "__main__":
    main()
