"""`fltrain run` with several numbers, as a user types it."""

import json
import os
import signal
import subprocess
from pathlib import Path

import click
import pytest

from niidpart_cli.train.progress import Bar, format_round
from niidpart_cli.train.sweep import SweptNumber

QUICK = ["--rounds", "2", "--local-steps", "2", "--batch-size", "16", "--checkpoint-every", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, niidpart):
    """A folder with two splits of one data set, and one of another."""
    folder = tmp_path_factory.mktemp("sweeps")
    for name, beta in (("dir0.1", "0.1"), ("dir0.5", "0.5")):
        assert (
            niidpart(
                "make",
                "--strategy",
                "dir",
                "--beta",
                beta,
                "--min-size",
                "2",
                "-o",
                f"{name}.h5",
                cwd=folder,
            ).returncode
            == 0
        )
    assert (
        niidpart(
            "make", "--dataset", "fcube", "--strategy", "fcube", "-o", "cube.h5", cwd=folder
        ).returncode
        == 0
    )
    return folder


@pytest.fixture(scope="module")
def swept(folder, fltrain):
    """What a sweep of 2 x 2 printed."""
    done = fltrain(
        "run",
        "dir0.5.h5",
        "--algorithm",
        "fedprox",
        "--mu",
        "0.001,1",
        "--trials",
        "2",
        *QUICK,
        "--out",
        "runs/sweep",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done


def outcome(run):
    return {
        f.name: f.read_bytes()
        for f in [run / "config.json", run / "metrics.jsonl", *(run / "checkpoints").iterdir()]
    }


def test_a_sweep_writes_the_folders_of_as_many_runs(folder, swept, fltrain):
    names = ["mu=0.001,seed=0", "mu=0.001,seed=1", "mu=1,seed=0", "mu=1,seed=1"]
    assert sorted(p.name for p in (folder / "runs" / "sweep").iterdir() if p.is_dir()) == names
    for name in names:
        mu, seed = (part.split("=")[1] for part in name.split(","))
        alone = [
            "run",
            "dir0.5.h5",
            "--algorithm",
            "fedprox",
            "--mu",
            mu,
            "--seed",
            seed,
            *QUICK,
            "--out",
            f"alone/{name}",
        ]
        assert fltrain(*alone, cwd=folder).returncode == 0
        assert outcome(folder / "runs" / "sweep" / name) == outcome(folder / "alone" / name)


def test_it_prints_a_table_of_runs_and_one_over_trials(folder, swept):
    lines = swept.stdout.splitlines()
    assert lines[0].split() == [
        *("run", "test_accuracy", "%", "rounds", "best", "%", "MB", "moved", "n")
    ]
    assert [line.split()[0] for line in lines[1:5]] == [
        "mu=0.001,seed=0",
        "mu=0.001,seed=1",
        "mu=1,seed=0",
        "mu=1,seed=1",
    ]
    finals = [
        100
        * json.loads(
            (folder / "runs" / "sweep" / f"mu=1,seed={s}" / "metrics.jsonl")
            .read_text()
            .splitlines()[-1]
        )["test_accuracy"]
        for s in (0, 1)
    ]
    mean, std = sum(finals) / 2, abs(finals[0] - finals[1]) / 2**0.5
    [row] = [line for line in lines if line.startswith("fedprox mu=1 ")]
    assert row.split()[-1] == "2"  # trials
    assert f"{mean:.2f} ± {std:.2f}" in row
    assert lines[-1] == "runs     runs/sweep"


def test_progress_is_a_line_a_round(swept):
    rounds = [line for line in swept.stderr.splitlines() if line.startswith("round")]
    assert [line.split()[1] for line in rounds] == ["1/2", "2/2"]
    assert all("4 runs  test " in line and "mean " in line for line in rounds)
    assert "4 runs, 40 jobs a round" in swept.stderr


def test_json_is_a_list_with_what_each_cell_is(folder, fltrain):
    done = fltrain(
        "run", "dir0.1.h5", "dir0.5.h5", "--lr", "0.1,0.01", *QUICK, "--json", cwd=folder
    )
    cells = json.loads(done.stdout)
    assert [c["cell"] for c in cells] == [
        {"split": s, "lr": lr} for s in ("dir0.1", "dir0.5") for lr in (0.1, 0.01)
    ]
    assert [Path(c["folder"]).name for c in cells] == [
        "split=dir0.1,lr=0.1",
        "split=dir0.1,lr=0.01",
        "split=dir0.5,lr=0.1",
        "split=dir0.5,lr=0.01",
    ]
    assert all(c["round"] == 2 and 0 <= c["test_accuracy"] <= 1 for c in cells)
    again = fltrain(
        "run", "dir0.1.h5", "dir0.5.h5", "--lr", "0.1,0.01", *QUICK, "--json", cwd=folder
    )
    first, second = (Path(json.loads(d.stdout)[0]["folder"]).parent.name for d in (done, again))
    assert first.endswith("-sweep")
    assert second == f"{first}-2"


def test_table_and_plot_take_the_cells(folder, swept, fltrain):
    cells = sorted(str(p.relative_to(folder)) for p in (folder / "runs" / "sweep").glob("*"))
    shown = subprocess.run(
        "ls -d runs/sweep/*", shell=True, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.split()
    assert shown == [c for c in cells if not Path(c).name.startswith(".")]
    done = fltrain("table", *shown, cwd=folder)
    assert done.returncode == 0
    assert done.stderr == ""  # both settings have the same seeds
    _, *rows = done.stdout.splitlines()
    assert [[*row.split()[:2], row.split()[-1]] for row in rows] == [
        ["fedprox", "mu=0.001", "2"],
        ["fedprox", "mu=1", "2"],
    ]
    each = fltrain("table", *shown, "--each", cwd=folder)
    assert [row.split()[0] for row in each.stdout.splitlines()[1:]] == shown
    assert fltrain("figure", "curves", *shown, "-o", "sweep.png", cwd=folder).returncode == 0
    assert (folder / "sweep.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("options", [(), ("--watch",), ("--tuning",)])
def test_a_sweep_is_no_study_and_what_goes_on_with_it_is_said(folder, fltrain, options):
    done = fltrain("study", "runs/sweep", *options, cwd=folder)
    assert done.returncode == 2
    assert "is a sweep, which has no workers; fltrain resume " in done.stderr


def test_one_value_is_an_ordinary_run(folder, fltrain):
    done = fltrain(
        "run", "dir0.5.h5", "--lr", "0.1", "--trials", "1", *QUICK, "--out", "one", cwd=folder
    )
    assert done.returncode == 0
    assert (folder / "one" / "config.json").exists()
    assert done.stdout.splitlines()[-1] == "run      one"


def test_a_resumed_sweep_prints_the_same(folder, swept, fltrain):
    done = fltrain("resume", "runs/sweep", cwd=folder)
    assert (done.returncode, done.stdout) == (0, swept.stdout)
    assert len(json.loads(fltrain("resume", "runs/sweep", "--json", cwd=folder).stdout)) == 4
    assert (
        json.loads(fltrain("resume", "runs/sweep/mu=1,seed=0", "--json", cwd=folder).stdout)[
            "round"
        ]
        == 2
    )


def test_cells_that_diverge_are_told_at_the_end(folder, fltrain):
    # a step of 1e6 with weight decay multiplies the weights by -1e6, which soon overflows
    args = [
        "dir0.5.h5",
        "--lr",
        "0.1,1e6",
        "--trials",
        "2",
        "--weight-decay",
        "1",
        "--rounds",
        "2",
        "--local-steps",
        "12",
    ]
    done = fltrain("run", *args, "--out", "far", cwd=folder)
    assert done.returncode == 1
    assert (
        "2 of 4 runs diverged, the others are done\nlr=1000000,seed=0: round 1, party"
        in done.stderr
    )
    assert (
        "what was reached before is kept: far/lr=1000000,seed=0, checkpoint of round 0"
        in done.stderr
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("round 2/2  2 of 4 runs")]
    [row] = [line for line in done.stdout.splitlines() if line.startswith("fedavg lr=1000000 ")]
    assert row.split() == ["fedavg", "lr=1000000", *"-----", "0", "of", "2"]
    told = [line for line in done.stdout.splitlines() if line.startswith("fedavg lr=1000000: ")]
    assert [line.split(" failed (")[0].split("seed=")[1] for line in told] == ["0", "1"]
    assert all(line.endswith("so no mean") for line in told)
    told = fltrain("resume", "far", "--json", cwd=folder)
    assert told.returncode == 1
    assert ["diverged" in cell for cell in json.loads(told.stdout)] == [False, False, True, True]


def test_ctrl_c_says_how_to_go_on(folder, warm, fltrain):
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from niidpart_cli.train import main\nfrom niidpart_cli.train.progress import Bar\n"
        # A shell that starts the tests in the background has them ignore the signal.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "hear = Bar.__call__\n"
        "def interrupt(self, event):\n    hear(self, event)\n"
        "    if list(Path('stopped').rglob('metrics.jsonl')): os.kill(os.getpid(), signal.SIGINT)\n"
        "Bar.__call__ = interrupt\nmain(sys.argv[1:])"
    )
    args = ["run", "dir0.5.h5", "--trials", "3", *QUICK, "--out", "stopped"]
    done = subprocess.run(
        [warm / "python", "-c", code, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert "interrupted: " in done.stderr
    assert "go on with: fltrain resume stopped" in done.stderr
    told = fltrain("table", "stopped", cwd=folder)
    assert told.stderr.endswith("so no mean\nfltrain resume stopped trains the rest\n")
    assert fltrain("resume", "stopped", cwd=folder).returncode == 0
    assert "resume" not in fltrain("table", "stopped", cwd=folder).stderr


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (
            "dir0.5.h5 --mu 0.1,1",
            2,
            "algorithm 'fedavg' has no option 'mu'; it belongs to fednova, fedprox",
        ),
        (
            "dir0.5.h5 --rounds 1,2",
            2,
            "'1,2' is no whole number; write one such as 10. It takes one value: numbers of the algorithm and --lr, --momentum",
        ),
        (
            "dir0.5.h5 --algorithm fedavg,fedprox",
            2,
            "--algorithm is fedavg,fedprox; words are not swept",
        ),
        ("dir0.5.h5 --model cnn,linear", 2, "--model is cnn,linear; words are not swept"),
        (
            "dir0.5.h5 --algorithm fedcd --rule mean,max",
            2,
            "'mean,max' is not one of 'mean', 'max'. It takes one value",
        ),
        ("dir0.5.h5 --engine looped,processes", 2, "It takes one value"),
        ("dir0.5.h5 --lr 0.1,x", 2, "Invalid value for '--lr': 'x' is no number"),
        ("dir0.5.h5 --lr 0.1,", 2, "'' is no number"),
        ("dir0.5.h5 --lr-drops 4,x", 2, "'4,x' is not a list of rounds such as 40,80"),
        ("dir0.5.h5 --lr 0.1,0.1", 2, "lr has the value 0.1 twice"),
        ("dir0.5.h5 --seed 0,1 --trials 2", 2, "2 trials and 2 seeds were asked for"),
        ("dir0.5.h5 --trials 0", 2, "--trials is 0; it must be at least 1"),
        ("dir0.5.h5 cube.h5", 2, "a sweep needs splits of one data set: train these apart"),
        ("dir0.5.h5 dir0.5.h5", 2, "the splits dir0.5 and dir0.5-2 are the same"),
        ("dir0.5.h5 nothing.h5", 1, "there is no file nothing.h5"),
        ("dir0.5.h5 --trials 2 --out runs/sweep", 1, "go on with it: fltrain resume runs/sweep"),
        ("", 2, "needs a split file, as in"),
    ],
)
def test_bad_input_says_what_to_do(folder, swept, fltrain, args, code, said):
    done = fltrain("run", *args.split(), cwd=folder)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_lists_of_rounds_stay_lists_of_rounds(folder, fltrain):
    args = [
        "run",
        "dir0.5.h5",
        "--algorithm",
        "fedcd",
        "--milestones",
        "1,2",
        "--lr-drops",
        "1,2",
        *QUICK,
        "--out",
        "rounds",
    ]
    refused = fltrain(*args, cwd=folder)  # without validation parts FedCD cannot score
    assert (refused.returncode, "--val" in refused.stderr) == (2, True), refused.stderr
    done = fltrain("run", "dir0.5.h5", "--lr-drops", "1,2", *QUICK, "--out", "rounds", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "rounds" / "config.json").read_text())["settings"]["lr_drops"] == [
        1,
        2,
    ]


def test_help_teaches_it(folder, fltrain):
    shown = " ".join(fltrain("run", "--help", cwd=folder).stdout.split())
    assert "Commas sweep: --mu 0.01,0.1 --lr 0.01,0.1 --trials 3 trains all 12 at once" in shown
    said = "In lists of rounds (--lr-drops, --milestones) commas part the rounds of one run."
    # a line may end at a hyphen
    assert said.replace(" ", "") in shown.replace(" ", "")
    for option in ("--lr FLOAT[,...]", "--seed INTEGER[,...]", "--rounds INTEGER Comm"):
        assert option in shown
    for algorithm, option in (("fedprox", "--mu FLOAT[,...]"), ("fedcd", "--bits INTEGER[,...]")):
        shown = fltrain("run", "--algorithm", algorithm, "--help", cwd=folder).stdout
        assert option in " ".join(shown.split())


def test_options_of_a_users_own_algorithm_are_swept(folder, fltrain):
    (folder / "mine.py").write_text(
        "from dataclasses import replace\nfrom fltrain.algorithms.fedavg import fedavg\n"
        "def slow(brake: float = 2.0):\n    return replace(fedavg(1 / brake), name='slow')\n"
    )
    done = fltrain(
        "run",
        "dir0.5.h5",
        "--algorithm",
        "mine.py:slow",
        "--brake",
        "4,2",
        *QUICK,
        "--out",
        "own",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert [
        json.loads((folder / "own" / f"brake={b}" / "config.json").read_text())["algorithm"][
            "options"
        ]
        for b in (4, 2)
    ] == [
        {"brake": 4},
        {"brake": 2},
    ]
    assert fltrain("resume", "own", cwd=folder).returncode == 1
    assert fltrain("resume", "own", "--trust", cwd=folder).returncode == 0


def test_numbers_are_converted_one_by_one():
    kind = SweptNumber(click.INT)
    assert [kind.convert(v, None, None) for v in ("3", 3, "3,4", "3, 4")] == [3, 3, [3, 4], [3, 4]]


def test_a_round_in_words():
    a, b, c = (
        {"test_accuracy": acc, "train_loss": loss}
        for acc, loss in ((0.5, 1.0), (0.75, 0.5), (None, None))
    )
    assert format_round([a]) == "test 50.00%  train loss 1.0000"
    assert (
        format_round([a, b])
        == "2 runs  test 50.00% to 75.00%, mean 62.50%  train loss 0.5000 to 1.0000"
    )
    assert format_round([c]) == "train loss not finite"
    assert format_round([a, c]) == "2 runs  test 50.00%, mean 50.00%  train loss 1.0000"
    assert format_round([a], of=2) == "1 of 2 runs  test 50.00%  train loss 1.0000"


def test_the_line_of_a_round_waits_for_no_cell_that_diverged(capsys):
    from fltrain import JobDone, RoundDone

    metrics = {"test_accuracy": 0.5, "train_loss": 1.0}
    with Bar(3) as bar:
        for round, cells in ((1, (0, 1, 2)), (2, (0, 2))):
            bar(JobDone(round, 3, 1, 9))
            for cell in cells:
                bar(RoundDone(round, 3, cell, metrics))
        bar(JobDone(3, 3, 1, 6))
        bar(RoundDone(3, 3, 0, metrics))
    assert [line[:22] for line in capsys.readouterr().err.splitlines()] == [
        "round 1/3  3 runs  tes",
        "round 2/3  2 of 3 runs",
        "round 3/3  1 of 3 runs",
    ]


@pytest.mark.usefixtures("swept")
def test_table_and_plot_take_a_whole_sweep(folder, fltrain):
    whole, one_by_one = (
        fltrain("table", *paths, "--json", cwd=folder)
        for paths in (["runs/sweep"], sorted(map(str, (folder / "runs/sweep").glob("mu*"))))
    )
    means = [
        [row["mean"] for row in json.loads(done.stdout)[0]["rows"]] for done in (whole, one_by_one)
    ]
    assert means[0] == means[1]
    assert None not in means[0]
    assert fltrain("figure", "curves", "runs/sweep", "-o", "sweep.png", cwd=folder).returncode == 0
    assert (folder / "sweep.png").stat().st_size > 0


def test_a_sweep_that_is_refused_in_its_first_round_leaves_no_folder(folder, fltrain):
    (folder / "mine.py").write_text(
        "from dataclasses import replace\nfrom fltrain.algorithms.fedavg import fedavg\n\n"
        "def refusing(k: float = 1.0):\n"
        "    def direction(task, local, batch):\n        raise ValueError('not like this')\n"
        "    return replace(fedavg(), name='refusing', direction=direction)\n"
    )
    done = fltrain(
        "run",
        "dir0.5.h5",
        "--algorithm",
        "mine.py:refusing",
        "--k",
        "1,2",
        *QUICK,
        "--out",
        "runs/refused",
        cwd=folder,
    )
    assert done.returncode == 2
    assert "not like this (" in done.stderr
    assert "mine.py, line 6)" in done.stderr
    assert not (folder / "runs" / "refused").exists()
