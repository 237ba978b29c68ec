"""`niidpart recipes`, and `make --recipe`, `--like`."""

import json

import numpy as np
import pytest

import niidpart as package


def test_recipes_lists_them_all(tmp_path, niidpart):
    lines = niidpart("recipes", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == package.recipes.list_recipes()
    assert all(len(line.split()) > 3 for line in lines)
    assert [
        line.split()[0] for line in niidpart("recipes", "fedcd", cwd=tmp_path).stdout.splitlines()
    ] == list(package.recipes.load_paper("fedcd"))


def test_recipes_for_machines_are_complete(tmp_path, niidpart):
    out = json.loads(niidpart("recipes", "--json", cwd=tmp_path).stdout)
    assert list(out) == package.recipes.list_recipes()
    for name, entry in out.items():
        assert package.Recipe.from_json(entry["recipe"]) == package.compose(recipe=name)
    one = json.loads(niidpart("recipes", "map004/mild", "--json", cwd=tmp_path).stdout)
    assert (list(one), one["map004/mild"]["dataset"], one["map004/mild"]["source"]) == (
        ["map004/mild"],
        "mnist",
        {"pool": True},
    )


def test_one_recipe_in_full_says_the_command_that_is_the_same_without_its_name(tmp_path, niidpart):
    x, y = np.zeros((2000, 4), np.float32), np.arange(2000) % 10
    np.savez(tmp_path / "own.npz", x=x, y=y, x_test=x[:50], y_test=y[:50])
    for name in (
        "niid/cifar10-dir0.5-noise0.1",
        "niid/mnist-c2",
        "map004/severe-party",
        "fedcd/hypergeometric-drop",
        "niid/adult-quantity0.5",
    ):
        shown = niidpart("recipes", name, cwd=tmp_path).stdout
        assert shown.startswith(f"{name}: {package.recipes.find_recipe(name).about}")
        [command] = [line.split()[1:] for line in shown.splitlines() if line.startswith("command")]
        words = command[2:]  # without `niidpart make`
        words[words.index("--dataset") + 1] = "own.npz"
        words[words.index("--data-root") : words.index("--data-root") + 2] = []
        long = niidpart("make", *words, "--json", "--force", cwd=tmp_path)
        short = niidpart("make", "--recipe", name, "--dataset", "own.npz", "--json", cwd=tmp_path)
        assert json.loads(long.stdout)["digest"] == json.loads(short.stdout)["digest"]


def test_a_recipe_brings_its_data_set_and_yields_to_options(tmp_path, niidpart):
    out = json.loads(niidpart("make", "--recipe", "niid/fcube", "--json", cwd=tmp_path).stdout)
    assert (out["source"]["name"], out["recipe"]["strategy"], out["recipe"]["n_parties"]) == (
        "fcube",
        "fcube",
        4,
    )
    args = "make --recipe niid/mnist-noise0.1 --dataset digits --parties 3 --seed 9 --val 0.1 --noise 0.3 --json --force"
    recipe = json.loads(niidpart(*args.split(), cwd=tmp_path).stdout)["recipe"]
    assert (recipe["n_parties"], recipe["seed"], recipe["val"]) == (3, 9, 0.1)
    assert recipe["transforms"] == [
        {"name": "noise", "params": {"sigma": 0.3, "level": "variance", "fresh": False}}
    ]


def test_a_recipe_whose_data_is_not_there_says_where_it_looked(tmp_path, niidpart):
    (tmp_path / "data").mkdir()
    done = niidpart("make", "--recipe", "niid/mnist-dir0.5", "--data-root", "data", cwd=tmp_path)
    assert (done.returncode, "looked for train-images-idx3-ubyte" in done.stderr) == (1, True), (
        done.stderr
    )
    done = niidpart("make", "--recipe", "niid/mnist-dir0.5", cwd=tmp_path)
    assert (done.returncode, "--data-root" in done.stderr) == (2, True)


def test_like_niidbench_is_its_rule(tmp_path, niidpart):
    like = niidpart(
        "make", "--like", "niidbench", "--strategy", "dir", "--beta", "0.5", "--json", cwd=tmp_path
    )
    rule = niidpart(
        "make", "--strategy", "niidbench", "--rule", "dir", "--beta", "0.5", "--json", cwd=tmp_path
    )
    assert json.loads(like.stdout)["digest"] == json.loads(rule.stdout)["digest"]
    assert niidpart("verify", "split.h5", cwd=tmp_path).returncode == 0


def test_help_of_a_replay_shows_its_own_options(tmp_path, niidpart):
    done = niidpart("make", "--like", "fluke", "--strategy", "dir", "--help", cwd=tmp_path)
    assert "Options of the strategy fluke:" in done.stdout
    assert "--min-each" in done.stdout
    assert "--min-size" not in done.stdout
    assert "--exponent" not in done.stdout  # of another rule, as the name of the rule itself
    assert "--rule" not in done.stdout
    done = niidpart("make", "--like=flower", "--strategy=continuous", "--help", cwd=tmp_path)
    assert "--strictness" in done.stdout
    assert "--beta" in niidpart("make", "--like", "niidbench", "--help", cwd=tmp_path).stdout
    done = niidpart("make", "--like", "fluke", "--strategy", "dirichlet", "--help", cwd=tmp_path)
    assert "fluke has no strategy 'dirichlet'" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("make", "give --strategy or --recipe"),
        ("make --like leaf", "give --strategy; of leaf there are: group, homo"),
        ("make --recipe niid/mnist-dr0.5", "did you mean niid/mnist-dir0.5"),
        ("make --recipe niid/fcube --parties 5", "fcube splits among 4 parties, 5 were asked for"),
        ("make --recipe niid/fcube --beta 0.5", "strategy 'fcube' has no option 'beta'"),
        ("make --strategy shards --like niidbench", "niidbench has no strategy 'shards'"),
        ("make --strategy dir --like niidbnch", "did you mean 'niidbench'?"),
        ("recipes nid", "did you mean 'niid'?"),
        ("recipes niid/mnist", "unknown recipe 'niid/mnist'"),
    ],
)
def test_what_cannot_be_done_is_exit_code_2_and_says_why(args, said, tmp_path, niidpart):
    done = niidpart(*args.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_another_data_set_is_pooled_where_the_recipe_says_so(tmp_path, niidpart):
    np.savez(
        tmp_path / "own.npz",
        y=np.arange(600) % 10,
        x=np.zeros((600, 2)),
        y_test=np.arange(60) % 10,
        x_test=np.zeros((60, 2)),
    )
    args = ["make", "--recipe", "fedcd/hierarchical", "--dataset", "own.npz", "--json", "--force"]
    source = json.loads(niidpart(*args, cwd=tmp_path).stdout)["source"]
    assert (source["n"], source["n_test"]) == (660, 0)
    source = json.loads(niidpart(*args, "--no-pool", cwd=tmp_path).stdout)["source"]
    assert (source["n"], source["n_test"]) == (600, 60)
