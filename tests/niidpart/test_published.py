"""The registry of published splits: records as they are written, and files that they recognise."""

import gzip
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import niidpart
from niidpart.citing.references import load_references
from niidpart.data import SOURCES
from niidpart.published import digest_rows, find_published, find_record, load_records

FILES = Path(os.environ.get("NIIDPART_TEST_DATA", "../shared/data")) / "published"
KNOWN = {
    "snu-cifar10-dirichlet0.05_clients100.txt.gz": "fedrcl/cifar10-dir0.05",
    "snu-cifar10-iid_clients100.txt.gz": "fedrcl/cifar10-iid",
    "polito-cifar10-federated_train_alpha_0.50.json.gz": "fedsam/cifar10-a0.50",
}


def test_every_record_is_whole_and_named_after_its_file(project):
    records = load_records()
    folder = project / "niidpart" / "published" / "records"
    assert sorted(path.stem for path in folder.glob("*.toml")) == sorted(
        name.replace("/", "-") for name in records
    )
    for record in records.values():
        assert record.dataset in SOURCES.names()
        assert record.paper in load_references()
        assert len(record.digests["train"]) == 64
        assert record.n > record.n_parties > 1
        assert record.rule
        assert record.places
        # Code that makes a split has no file of it, and a command here has its rows.
        assert all(len(place.sha256) == 64 or record.command for place in record.places)


def test_skew_is_what_the_name_says():
    """Of families whose parties draw their classes from Dir(beta), the number behind dir."""
    named = re.compile(r"(fedrcl|fedmuon|fedsim)/.*-dir(?P<beta>.*)")
    known = {one: found["beta"] for one in load_records() if (found := named.fullmatch(one))}
    assert len(known) == 18
    for name, beta in known.items():
        assert find_record(name).skew["beta"] == pytest.approx(float(beta), rel=0.05)


def test_no_two_records_are_one_split_of_one_data_set():
    digests = [(one.dataset, *one.digests.items()) for one in load_records().values()]
    assert len(set(digests)) == len(digests)


def test_the_page_has_each_record(project):
    page = (project / "docs" / "registry.md").read_text()
    for record in load_records().values():
        assert f"| `{record.name}` | {record.rule} |" in page


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(niidpart.UsageError, match=r"did you mean 'fedrcl/cifar10-dir0.05'"):
        find_record("fedrcl/cifar10-dir0.5")


@pytest.mark.parametrize("name", KNOWN)
def test_a_published_file_is_recognised(name, tmp_path):
    if not (FILES / name).exists():
        pytest.skip(f"there is no {FILES / name}")
    text = gzip.decompress((FILES / name).read_bytes())
    plain = tmp_path / Path(name).stem
    plain.write_bytes(text)
    for path in (FILES / name, plain):
        found = find_published(path)
        assert (found[0].record.name, found[0].by) == (KNOWN[name], "bytes")
    plain.write_bytes(text + b"\n")  # not the published bytes any more, and the same rows
    again = find_published(plain)
    assert {match.by for match in again} == {"rows"}
    # Two of them where one file is published for two data sets, as FedRCL's IID split is.
    assert [match.record for match in again] == [match.record for match in found]
    cited = [work.name for work in niidpart.cite(plain).works if work.role == "published file"]
    assert cited == [match.record.name for match in found]


def test_an_imported_one_is_recognised_and_cited(tmp_path):
    path = FILES / "snu-cifar10-dirichlet0.05_clients100.txt.gz"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    labels = np.arange(50_000) % 10  # classes do not count: rows do
    split = niidpart.import_(path, data=niidpart.from_arrays(None, labels))
    file = niidpart.write(split, tmp_path / "split.h5")
    [match] = find_published(file)
    assert (match.record.name, match.by) == ("fedrcl/cifar10-dir0.05", "rows")
    cited = {work.role: work.key for work in niidpart.cite(file).works}
    assert cited["published split"] == "seo2024relaxed"
    assert cited["published file"] == "published-fedrcl-cifar10-dir0.05"
    moved = niidpart.make(labels, "homo", n_parties=100)
    assert find_published(niidpart.write(moved, tmp_path / "other.h5")) == []


def test_a_published_file_is_not_taken_for_a_split_of_other_data(tmp_path):
    path = FILES / "snu-cifar10-dirichlet0.05_clients100.txt.gz"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    alone = niidpart.audit(path)
    assert (alone.published, alone.n) == (("fedrcl/cifar10-dir0.05",), 50_000)
    assert (alone.told_by, alone.exit_code) == ("registry", 0)
    assert alone.advice.startswith("add --dataset cifar10 --data-root DIR: with its labels")
    other = replace(niidpart.from_arrays(None, np.arange(50_000) % 100), name="cifar100")
    [found] = niidpart.audit(path, data=other).faults
    assert found.kind == "other-data"
    assert "published as fedrcl/cifar10-dir0.05, a split of cifar10" in found.text
    with pytest.raises(niidpart.errors.FileFault, match="import it with --dataset cifar10"):
        niidpart.import_(path, data=other)


def test_the_digest_of_rows_is_that_of_a_part_and_sees_rows_that_stand_twice():
    part = niidpart.make(np.arange(60) % 3, "homo", n_parties=4).train
    party = np.repeat(np.arange(4), part.sizes)
    order = np.random.default_rng(0).permutation(60)
    assert digest_rows(party[order], part.indices[order], 4) == part.digest
    again = np.append(party, 0), np.append(part.indices, part.indices[0])
    assert digest_rows(*again, 4) != part.digest
