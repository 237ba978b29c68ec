"""The peers' own released packages read what we export, each in an environment of its own.

NIIDPART_TEST_PEERS names a folder with the environments `flwr-datasets`, `fedlab`, `mlcroissant` and `fedartml`, each with that package (and numpy, scipy, h5py
where the package is to meet niidpart itself): `python -m venv DIR/flwr-datasets && DIR/flwr-datasets/bin/pip install flwr-datasets h5py scipy`.
One that is not there is a failure, unless NIIDPART_TEST_PEERS_WITHOUT names it (with commas between several).
PFLlib and LEAF are no packages: their layouts are read in test_formats.py as their own readers do.
"""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import niidpart

RNG = np.random.default_rng(2)
X, Y = RNG.integers(0, 256, (300, 6, 5), dtype=np.uint8), RNG.integers(0, 4, 300)
PARTIES = 12  # two digits, so that an order of texts would show


@pytest.fixture(scope="module")
def data():
    return niidpart.from_arrays(X, Y, class_names=["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="module")
def split(data):
    return niidpart.make(data, "dir", n_parties=PARTIES, beta=1.0, test=0.3, min_size=5)


NATURAL = """
import json, sys, numpy as np
from flwr_datasets import FederatedDataset
from flwr_datasets.partitioner import NaturalIdPartitioner

out = {}
for part in ("train", "test"):
    fds = FederatedDataset(dataset=sys.argv[1], partitioners={part: NaturalIdPartitioner(partition_by="party")})
    n = fds.partitioners[part].num_partitions if fds.load_partition(0, part) else 0
    parties = [fds.load_partition(p, part) for p in range(n)]
    key = "image" if "image" in parties[0].column_names else "x"
    out[part] = [
        {"row": d["row"][:], "label": d["label"][:], "party": d["party"][:], "x": [np.asarray(v).tolist() for v in d[key]]} for d in parties
    ]
    out["names"] = parties[0].features["label"].names
print(json.dumps(out))
"""


@pytest.mark.parametrize("transforms", [(), [("noise", {"sigma": 0.2})]], ids=["images", "noise"])
def test_flower_reads_just_our_rows_by_party(transforms, data, tmp_path, peer):
    pytest.importorskip("pyarrow")
    split = niidpart.make(
        data, "dir", n_parties=PARTIES, beta=1.0, test=0.3, min_size=5, transforms=transforms
    )
    niidpart.export(split, data, "flower", tmp_path / "out")
    found = peer("flwr-datasets", NATURAL, tmp_path / "out")
    assert found.pop("names") == ["ant", "bee", "cat", "dog"]
    for part, parties in found.items():
        assert len(parties) == PARTIES
        for p, held in enumerate(parties):
            rows = split.parts[part].party(p).astype(np.int64)
            x = niidpart.transform(
                split, X[rows], p, rows
            )  # FederatedDataset shuffles: sets are compared
            assert set(held["party"]) == {p}
            assert sorted(held["row"]) == rows.tolist()
            order = np.argsort(held["row"])
            assert np.array(held["label"])[order].tolist() == Y[rows].tolist()
            assert (np.array(held["x"], x.dtype)[order] == x).all()


def test_where_a_party_is_empty_flower_shifts_as_we_say(data, tmp_path, peer):
    pytest.importorskip("pyarrow")
    split = niidpart.make(data, "dir", n_parties=PARTIES, beta=0.05, min_size=0, seed=1)
    held = np.flatnonzero(split.train.sizes)
    assert len(held) < PARTIES
    niidpart.export(split, data, "flower", tmp_path / "out", skip_empty=True)
    code = NATURAL.replace('("train", "test")', '("train",)')
    assert [set(d["party"]) for d in peer("flwr-datasets", code, tmp_path / "out")["train"]] == [
        {int(p)} for p in held
    ]


OBJECT = """
import json, sys
import datasets, niidpart, numpy as np
from flwr_datasets import FederatedDataset
from flwr_datasets.partitioner import Partitioner
from niidpart.formats.flower import partitioner

split, table, y = niidpart.read(sys.argv[1]), sys.argv[2], None
out, said = {}, []
for part in ("train", "test"):
    made = partitioner(split, part)
    fds = FederatedDataset(dataset="parquet", data_files=table, partitioners={"train": made}, shuffle=False)
    out[part] = [fds.load_partition(p)["row"][:] for p in range(made.num_partitions)]
with niidpart.open(sys.argv[1]) as opened:
    made = partitioner(opened)
    made.dataset = datasets.load_dataset("parquet", data_files=table, split="train")
    out["opened"] = [made.load_partition(p)["row"][:] for p in range(made.num_partitions)]
for dataset, label in (("shuffled", "label"), ("short", "label"), ("whole", "lable")):
    made = partitioner(split, label=label)
    whole = datasets.load_dataset("parquet", data_files=table, split="train")
    made.dataset = {"shuffled": whole.shuffle(seed=1), "short": whole.select(range(10)), "whole": whole}[dataset]
    try:
        made.load_partition(0)
    except ValueError as error:
        said.append(str(error))
print(json.dumps({"rows": out, "is": isinstance(made, Partitioner), "said": said}))
"""


def test_the_partitioner_gives_our_rows_of_a_data_set_that_flower_loads(data, tmp_path, peer):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    split = niidpart.make(data, "dir", n_parties=PARTIES, beta=0.05, min_size=0, test=0.3, seed=1)
    assert not split.train.sizes.all()
    pq.write_table(pa.table({"row": np.arange(300), "label": Y}), tmp_path / "table.parquet")
    path = niidpart.write(split, tmp_path / "split.h5")
    found = peer("flwr-datasets", OBJECT, path, tmp_path / "table.parquet")
    assert found["is"]
    assert (
        found["rows"]["opened"] == found["rows"]["train"] == [rows.tolist() for rows in split.train]
    )
    assert found["rows"]["test"] == [rows.tolist() for rows in split.test]
    shuffled, short, missing = found["said"]
    assert "shuffle=False" in shuffled
    assert "300 examples, this data set has 10" in short
    assert "no column 'lable'" in missing


FEDLAB = """
import json, pickle, sys
import numpy as np
from fedlab.utils.dataset import functional
from fedlab.utils.dataset.partition import DataPartitioner

client_dict = pickle.load(open(sys.argv[1] + "/client_dict.pkl", "rb"))
counted = functional.samples_num_count(client_dict, len(client_dict))
out = {"rows": [client_dict[p].tolist() for p in range(len(client_dict))], "counted": counted["num_samples"].tolist()}
import niidpart
from niidpart.formats.fedlab import partitioner
made = partitioner(niidpart.read(sys.argv[2]), "test")
out |= {"is": isinstance(made, DataPartitioner), "len": len(made), "object": [made[p].tolist() for p in range(made.num_clients)]}
out["object_counted"] = made.client_sample_count["num_samples"].tolist()
print(json.dumps(out))
"""


def test_fedlab_counts_and_reads_our_rows(split, tmp_path, peer):
    niidpart.export(split, None, "fedlab", tmp_path / "out")
    found = peer("fedlab", FEDLAB, tmp_path / "out", niidpart.write(split, tmp_path / "split.h5"))
    assert found["rows"] == [rows.tolist() for rows in split.train]
    assert found["counted"] == split.train.sizes.tolist()
    assert (found["is"], found["len"]) == (True, PARTIES)
    assert found["object"] == [rows.tolist() for rows in split.test]
    assert found["object_counted"] == split.test.sizes.tolist()


FEDLABS_OWN = """
import json, pickle, sys
import numpy as np
from fedlab.utils.dataset.functional import hetero_dir_partition
np.random.seed(0)
made = hetero_dir_partition(np.array(json.loads(sys.argv[2])), 5, 4, 0.5, min_require_size=5)
pickle.dump(made, open(sys.argv[1], "wb"))
print(json.dumps([sorted(map(int, made[p])) for p in range(5)]))
"""


def test_what_fedlab_dealt_comes_in(data, tmp_path, peer):
    dealt = peer("fedlab", FEDLABS_OWN, tmp_path / "theirs.pkl", json.dumps(Y.tolist()))
    back = niidpart.import_(tmp_path / "theirs.pkl", "fedlab", data=data, trust_pickle=True)
    assert [rows.tolist() for rows in back.train] == dealt
    assert back.recipe.strategy == "imported"


CROISSANT = """
import json, sys
import mlcroissant
described = mlcroissant.Dataset(jsonld=sys.argv[1])
issues = described.metadata.ctx.issues
text = lambda v: v.decode() if isinstance(v, bytes) else v
rows = [{k: text(v) for k, v in r.items()} for r in described.records("rows")]
parties = [{k: text(v) for k, v in r.items()} for r in described.records("parties")]
print(json.dumps({"errors": list(issues.errors), "rows": rows, "parties": parties}, default=int))
"""


def test_croissant_is_valid_and_gives_our_rows(split, tmp_path, peer):
    niidpart.export(split, None, "croissant", tmp_path / "out")
    found = peer("mlcroissant", CROISSANT, tmp_path / "out" / "croissant.json")
    assert found["errors"] == []
    held = [(r["rows/part"], r["rows/party"], r["rows/row"]) for r in found["rows"]]
    assert held == [
        (name, p, row)
        for name, part in split.parts.items()
        for p in range(PARTIES)
        for row in part.party(p).tolist()
    ]
    assert [r["parties/train"] for r in found["parties"]] == split.train.sizes.tolist()


FEDARTML = """
import json, sys
import numpy as np
from fedartml import SplitAsFederatedData

y = np.array(json.loads(sys.argv[1]))
x = np.arange(len(y), dtype=float)[:, np.newaxis]
held, rows, *_ = SplitAsFederatedData(random_state=0).create_clients(
    x, y, num_clients=4, method="no-label-skew", quant_skew_method="dirichlet", alpha_quant_split=1
)
with open("rows.json", "w") as f:
    json.dump(rows["without_class_completion"], f, default=int)
pairs = held["without_class_completion"].values()
print(json.dumps([sorted([int(x[0]), int(y)] for x, y in party) for party in pairs]))
"""


def test_rows_that_fedartml_gives_come_in_as_its_clients_hold_them(data, tmp_path, peer):
    found = peer("fedartml", FEDARTML, json.dumps(Y.tolist()))
    with pytest.warns(UserWarning, match="of which data the rows are cannot be told"):
        split = niidpart.import_(tmp_path / "rows.json", data=data)
    assert [[[row, Y[row]] for row in party.tolist()] for party in split.train] == found


@pytest.mark.parametrize("name", ["flwr-datasets", "fedlab", "mlcroissant", "fedartml"])
def test_what_the_docs_show_of_a_peer_runs(name, tmp_path, project, peer):
    for package in ("pyarrow", "PIL", "datasets", "torch"):
        pytest.importorskip(package)
    page = (project / "docs" / "interop.md").read_text()
    ours, theirs = (
        re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        for kind in ("python", f"python needs-{name}")
    )
    assert theirs
    peer(name, "print(1)")  # skips where it is not
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(ours)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for block in theirs:
        peer(name, f"{block}\nprint(1)")
