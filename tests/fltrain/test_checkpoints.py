"""Checkpoints of a base and changed rows: what each holds, which stay, and the digest of a state from round to round."""

import hashlib
import json
import shutil
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fltrain
from fltrain import RunFolder
from fltrain.checkpoints.keeping import choose_kept
from fltrain.checkpoints.names import Place, chain_of, find_places
from fltrain.checkpoints.series import CheckpointSeries
from fltrain.checkpoints.state_digest import StateDigest, digest_state
from fltrain.checkpoints.store import Bound, CheckpointStore
from fltrain.disk.plain_folder import PlainFolder
from fltrain.interface import State

ASKED = {"algorithm": "scaffold", "fraction": 0.4, "rounds": 7}


@pytest.fixture(scope="module")
def runs(table, table_split, train, tmp_path_factory):
    """(a run whose parties keep something and train in turns, the same after the checkpoint of round 5)"""
    whole, stopped = (tmp_path_factory.mktemp("runs") / name for name in ("whole", "stopped"))

    def copy(event):
        if isinstance(event, fltrain.RoundDone) and event.round == 5:
            shutil.copytree(whole, stopped)

    train(table_split, table, out=whole, progress=copy, **ASKED)
    return whole, stopped


def rounds_of(path):
    return [place.round for place in RunFolder.open(path).store.list_places()]


# Which stay

series = st.lists(st.booleans(), min_size=1, max_size=20).map(
    lambda bases: [Place(i, is_base=base or i == 0) for i, base in enumerate(bases)]
)


@given(series, st.sampled_from(["last", "all", "every:1", "every:3", "every:7"]))
def test_what_stays_has_all_that_it_is_made_of(places, keep):
    kept = choose_kept(places, keep)
    assert set(kept) <= set(places)
    assert kept == sorted(kept)
    for place in kept:
        assert set(chain_of(places, place.round)) <= set(kept)


@given(series, st.sampled_from(["last", "every:3"]))
def test_the_newest_stays_and_one_that_shares_no_file_with_it(places, keep):
    kept = choose_kept(places, keep)
    assert kept[-1] == places[-1]
    newest = chain_of(places, places[-1].round)
    before = [place for place in places if place not in newest]
    if before:
        assert chain_of(places, before[-1].round)
        assert set(chain_of(places, before[-1].round)) <= set(kept) - set(newest)


@given(series)
def test_all_keeps_all_and_every_those_that_it_divides(places):
    assert choose_kept(places, "all") == places
    assert {p for p in places if p.round % 3 == 0} <= set(choose_kept(places, "every:3"))
    assert choose_kept([], "last") == []


@given(series, st.sampled_from(["last", "every:3", "all"]))
def test_what_stays_of_what_stayed_is_the_same(places, keep):
    kept = choose_kept(places, keep)
    assert choose_kept(kept, keep) == kept


def test_names_that_look_alike_are_none_of_ours():
    names = ["round-000001.json", "round-1.json", "round-0000002.json", "round-000003.json.bak"]
    assert find_places(names) == [Place(1, is_base=True)]
    names += ["round-000001.rows.safetensors", "round-1234567.json"]
    assert find_places(names) == [Place(1, is_base=False), Place(1234567, is_base=True)]


@pytest.mark.parametrize(
    ("keep", "expected"), [("all", [0, 1, 2, 3, 4, 5, 6, 7]), ("every:3", [0, 3, 6])]
)
def test_a_run_keeps_what_was_asked_for(table, table_split, train, runs, tmp_path, keep, expected):
    train(table_split, table, out=tmp_path / "run", keep=keep, **ASKED)
    there = rounds_of(tmp_path / "run")
    assert set(expected) <= set(there)
    assert set(rounds_of(runs[0])) <= set(there)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == (
        runs[0] / "metrics.jsonl"
    ).read_bytes()


def test_what_stays_can_be_said_on_resuming(runs, table, outcome, tmp_path):
    stopped = shutil.copytree(runs[1], tmp_path / "run")
    before = rounds_of(stopped)
    fltrain.resume(stopped, table, keep="all")
    assert rounds_of(stopped) == [*before, 6, 7]
    assert outcome(stopped) == outcome(runs[0])
    with pytest.raises(
        fltrain.UsageError, match="keep is 'most'; it must be all, last, or every:N"
    ):
        fltrain.resume(stopped, table, keep="most")


# Bases and changed rows


def test_changed_rows_hold_the_rows_of_the_cohort_alone(runs):
    store = RunFolder.open(runs[0]).store
    rows = [place for place in store.list_places() if not place.is_base]
    assert rows
    for place in rows:
        loaded = store.load(place)
        assert len(loaded.tensors["rows"]) == 2  # 40 % of five parties, a checkpoint each round
        for name, leaf in loaded.tensors.items():
            if name.startswith("parties/"):
                assert len(leaf) == 2


def test_an_algorithm_whose_parties_keep_nothing_writes_bases_alone(
    table, table_split, train, tmp_path
):
    train(table_split, table, out=tmp_path / "run", rounds=3, fraction=0.4, keep="all")
    assert all(place.is_base for place in RunFolder.open(tmp_path / "run").store.list_places())


def test_a_stopped_run_goes_on_to_the_same_files(runs, table, outcome, tmp_path, everything):
    stopped = shutil.copytree(runs[1], tmp_path / "run")
    fltrain.resume(stopped, table)
    assert outcome(stopped) == outcome(runs[0])
    assert everything(stopped / "checkpoints") == everything(runs[0] / "checkpoints")


@pytest.mark.filterwarnings("ignore:checkpoint")
def test_whichever_file_of_the_checkpoints_is_damaged_the_run_goes_on_to_the_same_end(
    runs, table, outcome, tmp_path
):
    for file in sorted((runs[1] / "checkpoints").iterdir()):
        stopped = shutil.copytree(runs[1], tmp_path / file.name)
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        (stopped / "checkpoints" / file.name).write_bytes(data)
        fltrain.resume(stopped, table)
        assert outcome(stopped) == outcome(runs[0]), file.name


# The digest of a state


def state_of(parties=6):
    numbers = torch.Generator().manual_seed(0)
    return State(
        models={"w": torch.randn(1, 4, generator=numbers)},
        buffers={},
        server={"c": {"w": torch.randn(4, generator=numbers), "n": torch.tensor(3)}},
        parties={"c": {"w": torch.randn(parties, 4, generator=numbers)}, "k": torch.zeros(parties)},
    )


@given(st.lists(st.lists(st.integers(0, 5), max_size=8), max_size=4))
def test_a_digest_brought_up_to_date_is_that_of_the_whole_state(rounds):
    """Rows may be written several times in a round: a party that trains several models."""
    state = state_of()
    digest = StateDigest(state)
    for written in rounds:
        for n, party in enumerate(written):
            state.parties["c"]["w"][party].copy_(torch.full((4,), float(n)))
            state.parties["k"][party].copy_(torch.tensor(float(n)))
        assert digest.update(state, written) == sorted(set(written))
        assert digest.value == digest_state(state)


def test_a_round_that_changes_no_row_has_a_checkpoint_that_can_be_read(tmp_path):
    """As where the cohort has no examples."""
    store = CheckpointStore(PlainFolder(tmp_path).enter("checkpoints"))
    state = state_of(parties=200)
    bound = Bound("config", "metrics", digest_state(state))
    series = CheckpointSeries(store, 0)
    for round in range(3):
        series.write(series.take(state), round, bound)
    assert [place.is_base for place in store.list_places()] == [True, False, False]
    assert digest_state(store.read(2).state) == bound.state


def test_what_nobody_said_was_written_is_noticed():
    state = state_of()
    digest = StateDigest(state)
    state.parties["k"][4] = 1.0  # an algorithm of one's own that writes where it should not
    assert digest.update(state, []) == [4]
    assert digest.value == digest_state(state)
    state.parties["c"]["w"] = state.parties["c"]["w"] + 1  # or that makes new leaves
    assert digest.update(state, []) == [0, 1, 2, 3, 4, 5]
    assert digest.update(state, []) == []
    state.parties["k"].data[2] = 9.0  # which torch does not count
    assert digest.update(state, None) == [2]
    assert digest.value == digest_state(state)
    state.parties["k"] = state.parties["k"].double()
    assert digest.update(state, []) == [0, 1, 2, 3, 4, 5]
    more = {name: torch.cat([leaf, leaf]) for name, leaf in state.models.items()}
    assert digest.update(replace(state, models=more), []) == []  # no row changed
    assert digest.value == digest_state(replace(state, models=more))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: State(s.models, s.buffers, s.server, {"c": s.parties["c"], "j": s.parties["k"]}),
        lambda s: State(s.models, {"x": {}}, s.server, s.parties),
        lambda s: State({"w": s.models["w"].double()}, {}, s.server, s.parties),
        lambda s: State({"w": s.models["w"].reshape(4, 1)}, {}, s.server, s.parties),
        lambda s: State({"w": s.models["w"] + 1}, {}, s.server, s.parties),
        lambda s: State(s.models, {}, s.server, {"k": s.parties["k"], "c": s.parties["c"]}),
        lambda s: State(
            s.models, {}, s.server, {"c": {"w": s.parties["c"]["w"].flip(0)}, "k": s.parties["k"]}
        ),
    ],
    ids=["name", "empty tree", "type", "shape", "value", "order", "rows"],
)
def test_whatever_differs_gives_another_digest(change):
    state = state_of()
    assert digest_state(change(state)) != digest_state(state)


def test_the_digest_is_what_the_page_says_it_is():
    """docs/run_folder.md, by hand."""
    state = state_of(2)
    w, c, n = state.models["w"], state.server["c"]["w"], state.server["c"]["n"]
    rows, k = state.parties["c"]["w"], state.parties["k"]
    leaves = [
        ["models/w", "float32", [1, 4]],
        ["server/c/w", "float32", [4]],
        ["server/c/n", "int64", []],
        ["parties/c/w", "float32", [2, 4]],
        ["parties/k", "float32", [2]],
    ]
    text = json.dumps({"leaves": leaves, "empty": ["buffers"]}).encode()
    each = [
        hashlib.sha256(rows[p].numpy().tobytes() + k[p].numpy().tobytes()).digest()
        for p in range(2)
    ]
    whole = text + b"".join(leaf.numpy().tobytes() for leaf in (w, c, n)) + b"".join(each)
    assert digest_state(state) == hashlib.sha256(whole).hexdigest()
