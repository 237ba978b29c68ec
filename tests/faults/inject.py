"""Makes every call of every command fail in turn, and reports what went wrong.

    python tests/faults/inject.py [--sample N] [--report FILE] [SCENARIO ...]

Each trial is a child, forked from this process after it has imported everything, in which the Nth
call of a kind fails: every N of every fault, or a sample. Then the power is cut at every moment, and
the command given again on what a disk may hold (disk.py). Prints a line of JSON a finding, then a
summary; ends with 1 where there is a finding. With the same report a campaign that was stopped goes
on; delete the file where the code has changed.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from beforehand import prepare_trials
from disk import PowerCut
from local_hub import HubProcess
from publishing import list_hub_scenarios
from redrawing import redraw
from report import POWER_CUT, Report
from scenarios import Scenario, list_split_scenarios
from shim import ADDRESS, FAULTS, Fault, Kind, Shim, build_environment
from studies import list_study_scenarios
from training import list_training_scenarios
from trials import Bench, Finding, Trial, Undisturbed, rehearse_cut, run_trial, run_undisturbed

from niidpart.temporaries import scratch_folder

_ROOM = 1 << 30  # bytes that a disk in memory has to have free


def main() -> None:
    arguments = _parse()
    if ADDRESS not in os.environ:
        # What a campaign that was killed left there is removed by the next one.
        with scratch_folder(_find_fast_folder()) as base:
            sys.exit(_start_again(base.resolve()))
    base = Path(os.environ[ADDRESS]).parent
    hub = HubProcess()
    os.environ["HF_ENDPOINT"] = hub.url
    try:
        sys.exit(_run(arguments, base, hub))
    finally:
        hub.end()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, help="so many trials of each scenario")
    parser.add_argument("--report", type=Path, help="a file with a line a trial, for going on")
    parser.add_argument(
        "--draws", type=int, help="no trials: exports after power cuts, drawn so many times"
    )
    parser.add_argument("--fault", default="", help="faults whose name begins so")
    parser.add_argument("scenarios", nargs="*", help="names of scenarios; else all")
    return parser.parse_args()


def _find_fast_folder() -> Path | None:
    """Memory where there is enough: trials test what is asked of a disk, and need none."""
    disk = Path("/dev/shm")
    if not os.access(disk, os.W_OK) or shutil.disk_usage(disk).free < _ROOM:
        return None
    return disk


def _start_again(base: Path) -> int:
    """Run this program again, with the shim loaded and every folder of libraries in `base`."""
    home = base / "home"
    (base / "work" / "tmp").mkdir(parents=True)
    home.mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    libraries = {
        "HF_HOME": str(home),
        "HF_TOKEN": "hf_ann",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "XDG_CACHE_HOME": str(home),
        "XDG_STATE_HOME": str(home),
        "MPLCONFIGDIR": str(home),
        "TMPDIR": str(base / "work" / "tmp"),
        "OMP_NUM_THREADS": "1",
    }
    environment = own | libraries | build_environment(base)
    return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


def _run(arguments: argparse.Namespace, base: Path, hub: HubProcess) -> int:
    import_everything()
    tempfile.gettempdir()  # Python tries the folder once with a file, which is none of a command's
    (base / "trace").touch()
    bench = Bench(base, Shim(base / "control", base / "trace"))
    all = [*list_split_scenarios(), *list_hub_scenarios(hub)]
    all += [*list_training_scenarios(), *list_study_scenarios()]
    scenarios = {scenario.name: scenario for scenario in all}
    chosen = [scenarios[name] for name in arguments.scenarios or scenarios]
    faults = [fault for fault in FAULTS if fault.name.startswith(arguments.fault)]
    campaign = Campaign(bench, faults, Report(arguments.report))
    if arguments.draws:
        return campaign.redraw(chosen, arguments.draws)
    return campaign.run(chosen, arguments.sample)


def import_everything() -> None:
    """Import what the commands import when they are called, so that children find it there."""
    import datasets
    import huggingface_hub
    import matplotlib.backends.backend_agg
    import pyarrow.parquet
    import sklearn.datasets
    import yaml

    import fltrain
    import fltrain.studies.api
    import niidpart
    import niidpart_cli.split
    import niidpart_cli.train
    from niidpart import plot

    programs = (niidpart_cli.split.main, niidpart_cli.train.main)
    # A command is made when it is called; what declares its options is loaded with it.
    commands = [make() for program in programs for _, make in program.makers.values()]
    loaded = (datasets, huggingface_hub, matplotlib, pyarrow, sklearn, yaml)
    loaded += (fltrain, niidpart, niidpart_cli, plot, *commands)
    assert None not in loaded


class Campaign:
    """Trials of scenarios, one after the other, and what they found."""

    def __init__(self, bench: Bench, faults: Sequence[Fault], report: Report):
        self.bench, self.faults, self.report = bench, faults, report
        self.seconds: dict[str, float] = {}

    def run(self, scenarios: Sequence[Scenario], sample: int | None) -> int:
        """Try all, or so many of each scenario. Returns the exit code."""
        report = self.report
        for scenario in scenarios:
            began = time.monotonic()
            self._try(scenario, sample)
            self.seconds[scenario.name] = round(time.monotonic() - began, 1)
            self._tell(
                f"{scenario.name}: {report.trials[scenario.name]} trials, "
                f"{report.disks[scenario.name]} disks, {len(report.findings)} findings so far"
            )
        summary = {
            "trials": report.trials.total(),
            "disks": report.disks.total(),
            "findings": len(report.findings),
            "trials_of": dict(report.trials),
            "disks_of": dict(report.disks),
            "seconds_of": self.seconds,
        }
        print(json.dumps(summary), flush=True)
        return bool(report.findings)

    def redraw(self, scenarios: Sequence[Scenario], draws: int) -> int:
        """Rebuild many more disks, of scenarios that are read without a process."""
        n_wrong = 0
        for scenario in scenarios:
            if scenario.read_files and not scenario.is_large:
                prepare_trials(self.bench, scenario)
                undisturbed = run_undisturbed(self.bench, scenario)
                redrawn = redraw(scenario, undisturbed, range(draws))
                print(json.dumps({"scenario": scenario.name} | redrawn._asdict()), flush=True)
                n_wrong += len(redrawn.wrong)
        return bool(n_wrong)

    def _try(self, scenario: Scenario, sample: int | None) -> None:
        """Try faults and power cuts of a scenario."""
        prepare_trials(self.bench, scenario)
        undisturbed = run_undisturbed(self.bench, scenario)
        places = self._list_places(scenario, undisturbed)
        has_disks = scenario.writes and not scenario.is_large
        disks = _list_disks(undisturbed) if has_disks else []
        calls = {kind.name or "": n for kind, n in undisturbed.seen.items() if n}
        self.report.plan(scenario.name, len(places), len(disks), calls)
        for fault, nth in _choose(places, sample):
            self._inject(Trial(scenario, fault, nth, undisturbed))
        for number, cut in _choose(list(enumerate(disks)), sample):
            self._cut_power(scenario, number, cut, undisturbed.names_after)

    def _list_places(self, scenario: Scenario, undisturbed: Undisturbed) -> list[tuple[Fault, int]]:
        """Return each fault with each of the calls that it can be of."""
        return [
            (fault, nth)
            for fault in self.faults
            if scenario.is_large == bool(fault.kinds & Kind.ALLOCATE)
            for nth in range(1, sum(undisturbed.seen[kind] for kind in fault.kinds) + 1)
        ]

    def _inject(self, trial: Trial) -> None:
        place = (trial.scenario.name, trial.fault.name, trial.nth)
        if not self.report.has(*place):
            fired, findings = run_trial(self.bench, trial)
            self._note(place, findings, fired=fired)

    def _cut_power(
        self, scenario: Scenario, number: int, cut: PowerCut, names_after: set[str]
    ) -> None:
        place = (scenario.name, POWER_CUT, number)
        if not self.report.has(*place):
            found = rehearse_cut(self.bench, scenario, cut.disk, cut.said, names_after)
            findings = [one._replace(nth=cut.moment, call=cut.how) for one in found]
            self._note(place, findings)

    def _note(
        self, place: tuple[str, str, int], findings: Sequence[Finding], *, fired: bool = True
    ) -> None:
        self.report.add(place, findings, fired=fired)
        for finding in findings:
            print(json.dumps(finding._asdict()), flush=True)

    def _tell(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def _list_disks(undisturbed: Undisturbed) -> list[PowerCut]:
    """Return what may be found after a power cut at any moment, each but once."""
    disks: dict[tuple[int, str], PowerCut] = {}
    for cut in undisturbed.history.list_disks():
        disks.setdefault((cut.disk.key, cut.said), cut)
    return list(disks.values())


def _choose(all: list[Any], sample: int | None) -> list[Any]:
    """Return all, or so many of them, always the same."""
    if sample is None or sample >= len(all):
        return all
    return random.Random(0).sample(all, sample)


if __name__ == "__main__":
    main()
