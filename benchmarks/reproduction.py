"""The papers' cells on real data: what we reach beside what they print.

    python benchmarks/reproduction.py run --data-root DIR --out results.jsonl [--groups fcube,adult] [--trials 3] [--rounds N] [--workers 2]
    python benchmarks/reproduction.py table results.jsonl

`run` makes the split of a recipe (`niidpart recipes`), trains by the preset of the same paper (`fltrain presets`), and adds a line to the results
for each finished trial; what stands there already is not run again, so it can be stopped and started. A trial's seed is that of the split too.
`table` prints the tables of docs/reproduction.md: mean and sample deviation over trials, the paper's number, the difference, and whether it lies
within two of the paper's standard deviations (and half a unit of its last digit). Of a trial that was run for several numbers of rounds the longest
counts; a cell cut short of the paper's rounds is not judged. Where the paper prints the best of a grid, chosen on the test set, so does a row of
ours, and the rows of the grid are not judged. Nothing here is tuned to a printed number.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reproduction_cells import GROUPS, Cell, Group

Line = dict[str, Any]  # of the results: a finished trial


@dataclass(frozen=True)
class Trial:
    """One run to do. options: of the algorithm; overrides: settings that are not the preset's."""

    group: str
    recipe: str
    algorithm: str
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def trials(names: list[str], n: int, rounds: int | None) -> Iterator[Trial]:
    """All trials of the groups, all seeds of a cell one after another last, so that every cell has its first trial early."""
    for seed in range(n):
        for name in names:
            group = GROUPS[name]
            overrides = dict(group.overrides) | ({"rounds": rounds} if rounds else {})
            for recipe in group.recipes:
                for algorithm, grid in group.algorithms.items():
                    for options in grid or ({},):
                        yield Trial(name, recipe, algorithm, seed, dict(options), overrides)


def train(trial: Trial, data_root: str) -> Line:
    """One trial on one thread: a line of the results."""
    import torch

    import fltrain
    import niidpart
    from fltrain import presets
    from niidpart import recipes

    torch.set_num_threads(1)
    group, recipe = GROUPS[trial.group], recipes.find_recipe(trial.recipe)
    data = niidpart.load(
        group.dataset or recipe.dataset,
        None if recipe.dataset == "fcube" else data_root,
        **recipe.source,
    )
    split = niidpart.make(data, recipe=trial.recipe, seed=trial.seed, **group.split)
    planned = presets.find(group.preset).on(split, trial.algorithm).settings["rounds"]
    overrides = {
        "rounds": min(planned, trial.overrides.get("rounds", planned)),
        "device": "auto",
        "threads": 1,
        "seed": trial.seed,
    }
    began = time.perf_counter()
    line = {
        "trial": trial.key,
        "digest": split.digest[:16],
        "planned": planned,
        "versions": f"niidpart {version('niidpart')}, torch {version('torch')}",
    }
    try:
        run = fltrain.run(
            split,
            data,
            preset=group.preset,
            algorithm=fltrain.algorithms.build(trial.algorithm, **options_of(group, split, trial)),
            model=group.model,
            **trial.overrides | overrides,
        )
    except fltrain.Diverged as error:
        return line | {
            "rounds": overrides["rounds"],
            "diverged": str(error),
            "seconds": time.perf_counter() - began,
        }
    scored = [m for m in run.history if m.get(group.metric) is not None]
    best = max(scored, key=lambda m: m[group.metric])
    return line | {
        "rounds": len(run.history),
        "final": scored[-1][group.metric],
        "best": best[group.metric],
        "best_round": best["round"],
        "seconds": round(time.perf_counter() - began, 1),
    }


def options_of(group: Group, split: Any, trial: Trial) -> dict[str, Any]:
    """The preset's options of the algorithm, and those of the trial in their place."""
    from fltrain import presets

    return presets.find(group.preset).on(split, trial.algorithm).options | trial.options


def run(args: argparse.Namespace) -> None:
    out = Path(args.out)
    done = {line["trial"] for line in read(out)} if out.exists() else set()
    todo = [
        t
        for t in trials(args.groups.split(","), args.trials, args.rounds)
        if t.key not in done and _asked_for(t, args)
    ]
    print(f"{len(todo)} trials to run, {len(done)} are there")
    with ProcessPoolExecutor(args.workers) as pool:
        running = {pool.submit(train, t, args.data_root): t for t in todo}
        for future in as_completed(running):
            line, trial = future.result(), running[future]
            with out.open("a") as f:
                f.write(json.dumps(line) + "\n")
            reached = f"{100 * line['final']:.2f} %" if "final" in line else "diverged"
            said = " ".join(
                [trial.recipe, trial.algorithm, *(f"{k}={v}" for k, v in trial.options.items())]
            )
            print(
                f"{said}, seed {trial.seed}: {reached} after {line['rounds']} of {line['planned']} rounds, {line['seconds']:.0f} s",
                flush=True,
            )


def _asked_for(trial: Trial, args: argparse.Namespace) -> bool:
    return all(
        only is None or name in only.split(",")
        for only, name in ((args.recipes, trial.recipe), (args.algorithms, trial.algorithm))
    )


def read(path: Path) -> list[Line]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def table(args: argparse.Namespace) -> None:
    """A markdown table for each group, in the order of the cells."""
    found: dict[str, dict[tuple[str, str], dict[str, dict[int, Line]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(dict))
    )
    for line in read(Path(args.results)):
        t = json.loads(line["trial"])
        seeds = found[t["group"]][t["recipe"], t["algorithm"]][
            " ".join(f"{k} {v}" for k, v in t["options"].items())
        ]
        if line["rounds"] >= seeds.get(t["seed"], line)["rounds"]:
            seeds[t["seed"]] = line
    for name, group in GROUPS.items():
        if name in found:
            print(f"\n## {group.title}\n")
            print(
                "| split | algorithm | ours % | trials | rounds | paper % | difference | within 2 sd |\n"
                + "| --- " * 8
                + "|"
            )
            for recipe in group.recipes:
                for algorithm in group.algorithms:
                    for said, columns in _rows(
                        group, recipe, algorithm, found[name][recipe, algorithm]
                    ):
                        print(
                            f"| {recipe} | {' '.join([algorithm, *said.split()])} | {' | '.join(columns)} |"
                        )


def _rows(
    group: Group, recipe: str, algorithm: str, runs: dict[str, dict[int, Line]]
) -> Iterator[tuple[str, list[str]]]:
    """(options, columns) of each row of a cell: one, or those of a grid and then the best of them."""
    cell, statistic = group.cells.get((recipe, algorithm)), group.statistics.get(algorithm, "final")
    lines = {said: list(seeds.values()) for said, seeds in runs.items()}
    if len(lines) < 2:
        for said, rows in lines.items():
            yield said, _columns(rows, cell, statistic)
        return
    for said, rows in lines.items():
        yield said, _columns(rows, None, statistic)
    whole = {said: rows for said, rows in lines.items() if not any("diverged" in r for r in rows)}
    if whole:
        best = max(whole, key=lambda said: statistics.mean(r[statistic] for r in whole[said]))
        yield f"best of the grid, on the test set: {best}", _columns(whole[best], cell, statistic)


def _columns(rows: list[Line], cell: Cell | None, statistic: str) -> list[str]:
    """ours, trials, rounds, paper, difference, within."""
    least, planned = min(r["rounds"] for r in rows), rows[0]["planned"]
    paper = (
        "-" if cell is None else f"{cell.mean}" + (f" ± {cell.std}" if cell.std is not None else "")
    )
    rounds, n = f"{least} of {planned}", str(len(rows))
    if lost := [r for r in rows if "diverged" in r]:
        return [f"diverged in {len(lost)}", n, rounds, paper, "-", "-"]
    values = [100 * r[statistic] for r in rows]
    ours = statistics.mean(values)
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    if cell is None:
        return [f"{ours:.2f}{spread}", n, rounds, paper, "-", "-"]
    judged = cell.std is not None and least == planned
    within = (
        "-"
        if not judged
        else "yes"
        if abs(ours - cell.mean) <= 2 * cell.std + cell.unit / 2
        else "no"
    )
    return [f"{ours:.2f}{spread}", n, rounds, paper, f"{ours - cell.mean:+.2f}", within]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--data-root", required=True)
    runs.add_argument("--out", required=True)
    runs.add_argument("--groups", default=",".join(GROUPS))
    runs.add_argument("--recipes", help="Only these of the groups.  [all]")
    runs.add_argument("--algorithms", help="Only these of the groups.  [all]")
    runs.add_argument("--trials", type=int, default=3)
    runs.add_argument(
        "--rounds", type=int, help="At most so many.  [the paper's, or what the group says]"
    )
    runs.add_argument("--workers", type=int, default=2)
    runs.set_defaults(do=run)
    tables = commands.add_parser("table")
    tables.add_argument("results")
    tables.set_defaults(do=table)
    args = parser.parse_args()
    args.do(args)


if __name__ == "__main__":
    main()
