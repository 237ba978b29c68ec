"""`fltrain presets`, and `fltrain run --preset`."""

import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest

from fltrain import presets

SHORT = ["--rounds", "1", "--local-steps", "1", "--device", "cpu"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, warm):
    """A folder with split.h5 of the digits, quiet.h5 and noisy.h5 of data with a test set of its own, held.h5 of data without."""
    folder = tmp_path_factory.mktemp("presets")
    rng = np.random.default_rng(0)
    x, y = rng.random((240, 6), dtype=np.float32), np.arange(240) % 4
    np.savez(folder / "own.npz", x=x[:200], y=y[:200], x_test=x[200:], y_test=y[200:])
    np.savez(folder / "bare.npz", x=x, y=y)
    own, bare = ["--dataset", "own.npz"], ["--dataset", "bare.npz", "--test", "0.2"]
    for name, extra in (
        ("split.h5", []),
        ("quiet.h5", own),
        ("noisy.h5", [*own, "--noise", "0.1"]),
        ("held.h5", [*bare, "--noise", "0.1"]),
    ):
        args = [warm / "niidpart", "make", "--strategy", "dir", "--beta", "0.5", *extra, "-o", name]
        subprocess.run(args, cwd=folder, check=True, capture_output=True)
    return folder


def config(folder):
    return json.loads((folder / "config.json").read_text())


def test_presets_are_listed_with_paper_and_data_sets(fltrain, tmp_path):
    lines = fltrain("presets", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == presets.names()
    assert json.loads(fltrain("presets", "--json", cwd=tmp_path).stdout) == [
        {
            "name": name,
            "about": presets.find(name).about,
            "sources": list(presets.find(name).sources),
        }
        for name in presets.names()
    ]
    for name, line in zip(presets.names(), lines[1:], strict=True):
        assert presets.find(name).about in line
        assert line.endswith(", ".join(presets.find(name).sources))


@pytest.mark.parametrize("name", presets.names())
def test_one_preset_shows_every_value_and_its_source(name, fltrain, tmp_path):
    lines = fltrain("presets", name, cwd=tmp_path).stdout.splitlines()
    rows = presets.find(name).rows
    shown = [line for line in lines if line.startswith("--")]
    assert len(shown) == len(rows)
    for row, line in zip(sorted(rows, key=lambda r: r.kind == "grid"), shown, strict=True):
        assert line.endswith(row.where)
        assert row.name.replace("_", "-") in line.split()[0]
        for value in row.value if row.kind == "grid" else [row.value]:
            assert isinstance(value, bool | tuple) or str(value) in line.split()
    assert lines[-len(presets.find(name).notes) :] == list(presets.find(name).notes)


def test_a_preset_without_a_grid_shows_no_empty_table(fltrain, tmp_path):
    shown = fltrain("presets", "pfllib", cwd=tmp_path).stdout
    assert "option" in shown.splitlines()[2]
    assert [line for line in shown.splitlines() if line.startswith("grid")] == []
    assert "\n\n\n" not in shown


@pytest.mark.parametrize(("extra", "is_said"), [((), True), (("--fraction", "0.3"), False)])
def test_a_preset_whose_share_is_one_party_says_so(extra, is_said, fltrain, folder, tmp_path):
    asked = ["--preset", "fedsim", "--model", "linear", *SHORT, *extra]
    done = fltrain("run", folder / "split.h5", *asked, cwd=tmp_path)
    said = "fedsim trains 0.1 of the parties in a round, of 10 one alone; --fraction 1 takes them"
    assert done.returncode == 0, done.stderr
    assert (said in done.stderr) == is_said


def test_metrics_where_parties_have_no_test_part_are_said_to_be_global(fltrain, folder, tmp_path):
    asked = ["--model", "linear", "--metrics", "macro-f1", *SHORT]
    for split, is_said in (("split.h5", True), ("held.h5", False)):
        done = fltrain("run", folder / split, *asked, cwd=tmp_path)
        said = "the parties have no test part: metrics are those of the global test set alone"
        assert done.returncode == 0, done.stderr
        assert (said in done.stderr) == is_said


def test_a_case_is_resolved_for_machines(fltrain, tmp_path):
    out = json.loads(
        fltrain(
            "presets", "niid", "--dataset", "rcv1", "--algorithm", "fedprox", "--json", cwd=tmp_path
        ).stdout
    )
    values = {
        v["name"]: (v["value"], v["source"])
        for v in out["values"]
        if not v["when"].keys() & {"parties", "model", "transforms"}
    }
    theirs = presets.find("niid").resolve("rcv1", "fedprox")
    assert values == {
        r.name: (list(r.value) if isinstance(r.value, tuple) else r.value, r.where)
        for r in theirs.values
    }
    assert (values["lr"][0], values["model"][0], values["mu"][0]) == (0.1, "mlp", 0.01)
    assert {"name": "mu", "value": [0.001, 0.01, 0.1, 1.0]}.items() <= next(
        g for g in out["grids"] if g["name"] == "mu"
    ).items()


def give_briefly(words):
    """A command with the values of `SHORT` for its own: an option is given once."""
    given = list(words)
    for option in SHORT[::2]:
        if option in given:
            at = given.index(option)
            del given[at : at + 2]
    return given


def test_the_command_shown_is_the_same_run(fltrain, folder):
    out = json.loads(
        fltrain(
            "presets", "niid", "--dataset", "digits", "--algorithm", "fedavg", "--json", cwd=folder
        ).stdout
    )
    words = give_briefly(shlex.split(out["command"]))
    assert words[:2] == ["fltrain", "run"]
    at = words.index("--local-epochs")
    del words[at : at + 2]  # SHORT has steps instead
    for name, args in (("long", words[1:]), ("short", ["run", "split.h5", "--preset", "niid"])):
        done = fltrain(*args, *SHORT, "--out", name, cwd=folder)
        assert done.returncode == 0, done.stderr
    long, short = config(folder / "long"), config(folder / "short")
    assert (long.pop("preset"), short.pop("preset")) == (None, "niid")
    assert long.pop("digest") != short.pop("digest")  # of all, the name of the preset too
    assert long == short
    assert (folder / "long" / "metrics.jsonl").read_bytes() == (
        folder / "short" / "metrics.jsonl"
    ).read_bytes()


def test_any_value_yields_to_its_option(fltrain, folder):
    args = [
        "run",
        "split.h5",
        "--preset",
        "fedrl",
        "--lr-drops",
        "",
        "--shuffle",
        "--momentum",
        "0.5",
        "--model",
        "linear",
        *SHORT,
    ]
    assert fltrain(*args, "--out", "given", cwd=folder).returncode == 0
    found = config(folder / "given")
    settings = found["settings"]
    assert (settings["lr_drops"], settings["shuffle"], settings["momentum"], found["model"]) == (
        [],
        True,
        0.5,
        "linear",
    )
    assert (settings["batch_size"], settings["weight_decay"]) == (32, 1e-5)


def test_options_of_the_algorithm_come_from_the_preset_or_from_the_command(fltrain, folder):
    for name, extra, mu in (("theirs", [], 0.2), ("mine", ["--mu", "0.7"], 0.7)):
        done = fltrain(
            "run",
            "split.h5",
            "--preset",
            "map004",
            "--algorithm",
            "fedprox",
            *extra,
            *SHORT,
            "--out",
            name,
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr
        assert "digits is no data set of the paper of map004" in done.stderr
        assert config(folder / name)["algorithm"]["options"]["mu"] == mu


def test_noise_in_the_split_makes_the_test_noisy(fltrain, folder):
    for split in (
        "quiet",
        "noisy",
        "held",
    ):  # held: only the parties' own test parts, which carry their noise anyway
        done = fltrain(
            "run", f"{split}.h5", "--preset", "niid", *SHORT, "--out", f"of-{split}", cwd=folder
        )
        assert done.returncode == 0, done.stderr
        assert config(folder / f"of-{split}")["settings"]["noisy_test"] is (split == "noisy")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("run split.h5 --preset fedlr", "unknown preset 'fedlr'; did you mean 'fedrl'?"),
        ("presets fedlr", "unknown preset 'fedlr'; did you mean 'fedrl'?"),
        ("presets niid --dataset cifar1", "unknown data set 'cifar1'; did you mean 'cifar10'?"),
        ("presets niid --algorithm fedvg", "unknown algorithm 'fedvg'; did you mean 'fedavg'?"),
        ("presets --dataset cifar10", "name it: fedcd, fedrl, fedsim, map004, niid, pfl"),
    ],
)
def test_bad_input_says_what_to_do(args, said, fltrain, folder):
    done = fltrain(*args.split(), cwd=folder)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_listing_and_completion_load_no_torch(tmp_path):
    code = "import sys\nfrom niidpart_cli.train import main\ntry: main(prog_name='fltrain')\nexcept SystemExit: pass\nprint('torch' in sys.modules)"

    def out(*args, **env):
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=os.environ | env,
        )
        return done.stdout.split()

    assert out("presets", "niid", "--dataset", "mnist")[-1] == "False"
    for command in ("run split.h5 --preset", "presets"):
        words = f"fltrain {command} fed"
        found = out(
            _FLTRAIN_COMPLETE="bash_complete",
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split()) - 1),
        )
        assert found == ["plain,fedcd", "plain,fedrl", "plain,fedsim", "False"]
