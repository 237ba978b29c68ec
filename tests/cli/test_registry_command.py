"""`niidpart registry list|show|find`."""

import json

import numpy as np
import pytest

import niidpart as package
from niidpart.published import load_records


def test_list_names_them_all(tmp_path, niidpart):
    lines = niidpart("registry", "list", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(load_records())
    held = json.loads(niidpart("registry", "list", "--json", cwd=tmp_path).stdout)
    assert [record["name"] for record in held] == list(load_records())


def test_show_says_where_it_stands(tmp_path, niidpart):
    shown = niidpart("registry", "show", "fedrcl/cifar10-dir0.05", cwd=tmp_path).stdout
    assert "skynbe/FedRCL 378beb4: client_data/CIFAR10" in shown
    assert "50000 rows among 100 parties" in shown


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path, niidpart):
    done = niidpart("registry", "show", "fedrcl/cifar10-dir0.07", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean" in done.stderr


def test_find_says_that_it_is_none_and_ends_with_1(tmp_path, niidpart):
    split = package.make(np.arange(60) % 3, "homo", n_parties=4)
    package.write(split, tmp_path / "mine.h5")
    done = niidpart("registry", "find", "mine.h5", cwd=tmp_path)
    assert done.returncode == 1
    assert "mine.h5 is none of the" in done.stdout
    done = niidpart("registry", "find", "mine.h5", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (1, [])


@pytest.mark.parametrize("name", ["missing.txt", "words.txt"])
def test_what_cannot_be_read_is_an_error(name, tmp_path, niidpart):
    (tmp_path / "words.txt").write_text("no rows in here")
    done = niidpart("registry", "find", name, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert name in done.stderr
