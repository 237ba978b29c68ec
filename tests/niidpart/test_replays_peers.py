"""Replays beside the peers' own released packages, row by row, each in an environment of its own.

NIIDPART_TEST_PEERS names the folder of the environments (`test_formats_peers.py`): `flwr-datasets`,
`fedlab`, `pfl`, `fluke`.
"""

import json

import numpy as np
import pytest

import niidpart

ROWS = np.arange(430) ** 2 * 7 % 1009 % 10
LABELS = np.concatenate([np.arange(10), ROWS])
SEEDS = (0, 42)

# Reads [{rule, seed, n_parties, options}] and prints the rows of each case's parties.
FLOWER = """
import json, sys, warnings
import datasets
import numpy as np
from flwr_datasets import partitioner as p

warnings.simplefilter("ignore")
labels, cases = json.loads(sys.argv[1]), json.loads(sys.argv[2])

def build(rule, seed, n, o):
    if rule in ("dir", "dir-balanced"):
        return p.DirichletPartitioner(n, "label", o["beta"], self_balancing=rule != "dir", seed=seed)
    if rule == "party-dir":
        return p.InnerDirichletPartitioner([len(labels) // n] * n, "label", o["beta"], seed=seed)
    if rule == "labels":
        return p.PathologicalPartitioner(n, "label", o["k"], o["assignment"], seed=seed)
    if rule == "shards":
        return p.ShardPartitioner(n, "label", o["shards"], keep_incomplete_shard=o["keep_rest"], seed=seed)
    if rule == "continuous":
        return p.ContinuousPartitioner(n, "value", o["strictness"], seed=seed)
    if rule == "distribution":
        table = o.get("table")
        if table:
            table = np.array([[float(x) for x in row.split(",")] for row in table.split(";")])
        else:
            table = np.random.default_rng(o["table_seed"]).lognormal(0.0, o["deviation"], n * o["k"])
            table = table.reshape(10, -1)
        return p.DistributionPartitioner(table, n, o["k"], "label", o["preassigned"], seed=seed)
    return {"homo": p.IidPartitioner, "linear": p.LinearPartitioner,
            "square": p.SquarePartitioner, "exponential": p.ExponentialPartitioner}[rule](n)

found = []
for case in cases:
    one = build(case["rule"], case["seed"], case["n_parties"], case["options"])
    one.dataset = datasets.Dataset.from_dict(
        {"label": labels, "row": range(len(labels)), "value": json.loads(sys.argv[3])}
    )
    found.append([sorted(one.load_partition(i)["row"]) for i in range(case["n_parties"])])
print(json.dumps(found))
"""
FEDLAB = """
import json, sys, warnings
import numpy as np
from fedlab.utils.dataset import functional as f

warnings.simplefilter("ignore")
y, cases = np.array(json.loads(sys.argv[1])), json.loads(sys.argv[2])
N, K = len(y), int(y.max()) + 1

def deal(rule, n, o):
    if rule == "dir":
        return f.hetero_dir_partition(y, n, K, o["beta"], o["redraw_below"])
    if rule == "party-dir":
        sizes = f.balance_split(n, N)
        return f.client_inner_dirichlet_partition(y, n, K, o["beta"], sizes, verbose=False)
    if rule == "labels":
        return f.label_skew_quantity_based_partition(y, n, K, o["k"])
    if rule == "shards":
        return f.shards_partition(y, n, o["shards"] * n)
    sizes = {"homo": lambda: f.balance_split(n, N),
             "lognormal": lambda: f.lognormal_unbalance_split(n, N, o["sigma"]),
             "quantity": lambda: f.dirichlet_unbalance_split(n, N, o["beta"])}[rule]()
    return f.homo_partition(sizes, N)

found = []
for case in cases:
    np.random.seed(case["seed"])
    held = deal(case["rule"], case["n_parties"], case["options"])
    found.append([sorted(map(int, held[i])) for i in range(case["n_parties"])])
print(json.dumps(found))
"""
PFL = """
import json, sys
import numpy as np
from pfl.data.partition import partition_by_dirichlet_class_distribution

labels, cases = np.array(json.loads(sys.argv[1])), json.loads(sys.argv[2])
found = []
for case in cases:
    np.random.seed(case["seed"])
    size = len(labels) // case["n_parties"]
    held = partition_by_dirichlet_class_distribution(labels, case["options"]["beta"], lambda: size)
    found.append([sorted(map(int, rows)) for rows in held[: case["n_parties"]]])
print(json.dumps(found))
"""
FLUKE = """
import json, sys, warnings
import numpy as np
import torch
from fluke.data import DataContainer, DataSplitter

warnings.simplefilter("ignore")
y, cases = torch.tensor(json.loads(sys.argv[1])), json.loads(sys.argv[2])
rows = torch.arange(len(y))
NAMES = {"homo": "iid", "quantity": "qnt", "labels": "lbl_qnt", "dir": "dir", "shards": "pathological"}
KEYS = {"beta": "beta", "k": "class_per_client", "exponent": "alpha", "shards": "shards_per_client", "even": "balanced"}

found = []
for case in cases:
    options = dict(case["options"])
    test_ratio, least = options.pop("test_ratio", 0.0), options.pop("min_each", None)
    given = {KEYS[name]: value for name, value in options.items()}
    if least is not None:
        given["min_ex_class" if case["rule"] == "dir" else "min_quantity"] = least
    data = DataContainer(rows, y, rows[:1], y[:1], 10)
    np.random.seed(case["seed"])
    splitter = DataSplitter(data, NAMES[case["rule"]], client_split=test_ratio, dist_args=given)
    (train, test), _ = splitter.assign(case["n_parties"])
    found.append([[sorted(one.tensors[0].tolist()) for one in part if one] for part in (train, test)])
print(json.dumps(found))
"""


def list_cases(rules, n_parties=6):
    """Each rule with each of its options and each seed."""
    return [
        {"rule": rule, "seed": seed, "n_parties": n_parties, "options": options}
        for rule, every in rules.items()
        for options in every
        for seed in SEEDS
    ]


def ask(peer, name, code, cases, *more):
    return peer(name, code, json.dumps(LABELS.tolist()), json.dumps(cases), *more)


def replay(name, case, **beside):
    return niidpart.make(
        LABELS,
        case["rule"],
        like=name,
        **beside,
        seed=case["seed"],
        n_parties=case["n_parties"],
        **case["options"],
    )


BETAS = [{"beta": beta} for beta in (0.1, 0.3, 1.0, 10.0)]
FLOWER_RULES = {
    # below 0.1 numpy breaks a stick, from 1 on it draws normals
    "dir": [{"beta": 0.09}, *BETAS],
    "dir-balanced": [{"beta": 0.09}, *BETAS],
    "party-dir": [{"beta": 1.0}, {"beta": 10.0}],  # with less it ends in an error of its own
    "labels": [
        {"k": k, "assignment": assignment}
        for k in (1, 3)
        for assignment in ("random", "deterministic", "first-deterministic")
    ],
    "shards": [{"shards": 3, "keep_rest": rest} for rest in (False, True)],
    "homo": [{}],
    "linear": [{}],
    "square": [{}],
    "exponential": [{}],
}
# Of a table, a party is a multiple of ten; a property is a number of each example.
VALUES = np.sqrt(np.arange(440) * 7919 % 1009) - 3
ROW = "1,2,3.5,0.25"
FLOWER_TABLES = {
    "distribution": [
        {"k": 2, "preassigned": 2, "deviation": 2.0, "table_seed": 2024},
        {"k": 1, "preassigned": 0, "deviation": 0.5, "table_seed": 7},
        {"k": 2, "preassigned": 1, "table": ";".join([ROW] * 10)},
    ]
}
FLOWER_PROPERTIES = {"continuous": [{"strictness": x} for x in (0.0, 0.3, 0.999, 1.0)]}


def test_flower(peer):
    cases = list_cases(FLOWER_RULES, n_parties=4)
    cases += list_cases(FLOWER_TABLES, n_parties=20) + list_cases(FLOWER_PROPERTIES, n_parties=7)
    theirs = ask(peer, "flwr-datasets", FLOWER, cases, json.dumps(VALUES.tolist()))
    for case, rows in zip(cases, theirs, strict=True):
        beside = {"embeddings": VALUES[:, None]} if case["rule"] == "continuous" else {}
        assert [held.tolist() for held in replay("flower", case, **beside).train] == rows, case


FEDLAB_RULES = {
    "dir": [{"beta": 0.1, "redraw_below": 1}, {"beta": 1.0, "redraw_below": 5}],
    "party-dir": [{"beta": 1.0}, {"beta": 10.0}],
    "labels": [{"k": 3}],
    "lognormal": [{"sigma": 0.3}],
    "quantity": [{"beta": 2.0}],
    "homo": [{}],
}


def test_fedlab(peer):
    cases = list_cases(FEDLAB_RULES, n_parties=11)
    theirs = ask(peer, "fedlab", FEDLAB, cases)
    for case, rows in zip(cases, theirs, strict=True):
        assert [held.tolist() for held in replay("fedlab", case).train] == rows, case


def test_fedlabs_shards_have_its_counts(peer):
    cases = list_cases({"shards": [{"shards": 3}]})
    for case, rows in zip(cases, ask(peer, "fedlab", FEDLAB, cases), strict=True):
        counts = [np.bincount(LABELS[held], minlength=10).tolist() for held in rows]
        assert replay("fedlab", case).train.counts.tolist() == counts


@pytest.mark.parametrize("n_parties", [4, 11])
def test_pfl(peer, n_parties):
    cases = list_cases({"party-dir": BETAS}, n_parties)
    theirs = ask(peer, "pfl", PFL, cases)
    for case, rows in zip(cases, theirs, strict=True):
        assert [held.tolist() for held in replay("pfl", case).train] == rows, case


HELD_OUT = {"test_ratio": 0.2}
FLUKE_RULES = {
    "dir": [
        {"beta": 0.1},
        {"beta": 2.0, "min_each": 0} | HELD_OUT,
        {"beta": 0.5, "min_each": 8},  # so much that the rest stands in a set's own order
        {"beta": 0.3, "even": True} | HELD_OUT,
    ],
    "homo": [{}, HELD_OUT],
    "labels": [{"k": 3}, {"k": 5} | HELD_OUT],
    "quantity": [{"exponent": 4.0}, {"exponent": 0.7, "min_each": 5} | HELD_OUT],
}


def spread(split, part):
    """A party's rows of a part, each as often as the published code gives it."""
    held = [rows.tolist() for rows in split.parts[part]]
    for party, row in split.draws["again"].tolist():
        if row in held[party]:
            held[party].append(row)
    return [sorted(rows) for rows in held]


@pytest.mark.parametrize("n_parties", [4, 11])
def test_fluke(peer, n_parties):
    if n_parties == 11:
        rules = {"labels": [{"k": 1}], "homo": [{}], "dir": [{"beta": 0.5, "min_each": 1}]}
    else:
        rules = FLUKE_RULES
    cases = list_cases(rules, n_parties)
    for case, (train, test) in zip(cases, ask(peer, "fluke", FLUKE, cases), strict=True):
        split = replay("fluke", case)
        assert spread(split, "train") == train, case
        assert spread(split, "test") == (test or [[]] * n_parties), case


def test_flukes_shards_have_its_counts(peer):
    cases = list_cases({"shards": [{"shards": 3}]})
    for case, (train, _) in zip(cases, ask(peer, "fluke", FLUKE, cases), strict=True):
        counts = [np.bincount(LABELS[held], minlength=10).tolist() for held in train]
        assert replay("fluke", case).train.counts.tolist() == counts
