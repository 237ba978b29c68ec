"""FedFomo: by a second transcription, by hand; who does not help is not mixed in, who helped is asked again."""

import numpy as np
import pytest
import torch
from torch import nn

import niidpart
from fltrain import UsageError, tree
from fltrain.algorithms import build, fedfomo
from fltrain.algorithms.fedfomo import choose_others
from fltrain.interface import Plan, State

from . import _transcribed_mixtures as transcribed
from ._by_hand import HARD, make_two_parties
from ._transcribed import Federation

VARIANTS = [{"received": 1, "epsilon": 1.0, "epsilon_decay": 0.0}, {"norm": "l1"}]
EXACT = {"epsilon": 0.0}


@pytest.fixture
def val_loss(table, table_split):
    """val_loss(federation): the loss of a vector of weights on a party's validation part."""

    def of_federation(f):
        def measure(w, party):
            rows = table_split.val.party(party)
            x = torch.from_numpy(table.features(rows))
            logits = torch.func.functional_call(f.module, f.tree(w), x)
            y = torch.from_numpy(table.labels[rows])
            return float(nn.functional.cross_entropy(logits, y).detach())

        return measure

    return of_federation


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_rounds_are_those_of_a_second_transcription(
    norm, table, table_split, train, double, val_loss, certify
):
    done = train(table_split, table, model=double(), algorithm=fedfomo(norm=norm), **HARD)
    f = Federation(table_split, table, double(), **HARD)
    expected = transcribed.fedfomo(f, HARD["rounds"], val_loss(f), int(norm[1]))
    for party, w in expected.items():
        found = torch.cat([p.detach().reshape(-1) for p in done.model(party).parameters()])
        certify("fedfomo", float((found - w).abs().max()))
    assert max(float((w - f.start).abs().max()) for w in expected.values()) > 0.1


def test_one_round_by_hand(dealt, float64, train):
    """One step of 0.1, the validation parts the training rows; the first of two weights (w, -w), a way of w has the length sqrt 2 w.

    y_0 = 0.05 and y_1 = -0.1, both from 0, where the losses are ln 2 = 0.69314718.
    Party 0 loses ln(1 + exp(-0.1)) = 0.64439666 with y_0 and ln(1 + exp(0.2)) = 0.79813887 with y_1: y_0 alone helps, and it goes there.
    Party 1 loses ln(1 + exp(0.2)) = 0.79813887 with y_0 and ln(1 + exp(-0.4)) = 0.51301525 with y_1: it goes to y_1.
    Gains of party 0 are 0.04875052 / 0.05 = 0.97501041 and -0.10499169 / 0.1 = -1.04991689, both by sqrt 2; by the size of their sum,
    0.07490648, that is 13.01636960 and -14.01636960.
    """
    _, data, model = make_two_parties(dealt, float64)
    split = dealt(data, [0, 1, 1, 1], val=[0, 1, 1, 1])
    how = {"rounds": 1, "lr": 0.1, "momentum": 0.0}
    state = train(split, data, model=model, algorithm=fedfomo(), **how).state
    assert state.server["params"]["0.weight"][:, 0, 0].tolist() == pytest.approx(
        [0.05, -0.1], abs=1e-12
    )
    noted = state.server["affinity"][0].tolist()
    assert noted == pytest.approx([13.01636960, -14.01636960], rel=1e-7)


def test_a_party_alone_in_its_cohort_hears_of_nobody(table, table_split, train):
    done = train(table_split, table, algorithm=fedfomo(), **HARD | {"fraction": 0.2})
    affinity = done.state.server["affinity"]
    assert torch.count_nonzero(affinity.diagonal()) > 1
    assert torch.equal(affinity, torch.diag(affinity.diagonal()))
    assert all(metrics["bytes_down"] == 0 for metrics in done.history)


def test_parties_of_one_kind_hear_of_each_other(train, dealt):
    """Those of the other kind have the labels exchanged, so that their models lose."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 4)).astype(np.float32)
    party = np.arange(240) % 6
    y = (x[:, 0] > 0).astype(np.int64) ^ (party % 2)
    data = niidpart.from_arrays(x, y, x, y)
    is_val = rng.random(240) < 0.3
    split = dealt(data, np.where(is_val, -1, party), val=np.where(is_val, party, -1))
    how = {"rounds": 5, "model": "linear", "lr": 0.3}
    state = train(split, data, algorithm=fedfomo(epsilon=0.0), **how).state
    affinity = state.server["affinity"]
    kinds = torch.arange(6) % 2
    is_same = kinds.unsqueeze(0) == kinds.unsqueeze(1)
    assert float(affinity[is_same].min()) > float(affinity[~is_same].max())


def test_who_helped_most_is_asked_and_others_by_chance():
    affinity = torch.tensor([[0.0, 1.0, 3.0, 2.0, -1.0]] * 5, dtype=torch.float64)
    server = {"affinity": affinity, "rounds": torch.zeros(1), "seed": torch.tensor([4])}
    state, cohort = State({}, {}, server), Plan(torch.tensor([0, 1, 2, 4]), torch.zeros(4))
    sure = {"received": 2, "epsilon": 0.0, "epsilon_decay": 0.0}
    assert choose_others(state, cohort, sure)[0] == (0, [0, 2, 1])
    any_of_them = {"received": 1, "epsilon": 1.0, "epsilon_decay": 0.25}
    drawn, late = set(), set()
    for over in range(60):
        early = server | {"rounds": torch.tensor([0]), "seed": torch.tensor([over])}
        drawn.add(choose_others(State({}, {}, early), cohort, any_of_them)[0].candidates[1])
        after = early | {"rounds": torch.tensor([4])}
        late.add(choose_others(State({}, {}, after), cohort, any_of_them)[0].candidates[1])
    assert (drawn, late) == ({1, 2, 4}, {2})


def test_models_of_others_go_down_and_one_comes_up(table, table_split, train):
    model = 4 * (6 * 3 + 3)
    for received, heard in ((2, 2), (9, 4)):
        algorithm = build("fedfomo", received=received)
        metrics = train(table_split, table, algorithm=algorithm, model="linear", rounds=1)
        assert metrics.history[0]["bytes_down"] == 5 * heard * model
        assert metrics.history[0]["bytes_up"] == 5 * (model + 4 * (heard + 1))


def test_a_split_without_validation_parts_is_refused(table, train):
    split = niidpart.make(table, "homo", n_parties=3)
    with pytest.raises(UsageError, match="val"):
        train(split, table, algorithm=fedfomo())


def test_between_rounds_the_common_start_is_all_that_is_global(table, table_split, train, same):
    before, after = (
        train(table_split, table, algorithm=fedfomo(), **HARD | {"rounds": rounds}).state
        for rounds in (1, 3)
    )
    assert same(before.models, after.models)
    assert {len(leaf) for leaf in tree.leaves(after.models)} == {1}


def test_a_cohort_without_examples_moves_nobody(table, dealt, train, same):
    """One of six parties a round, of which three hold nothing: whoever is chosen, the run goes on."""
    owner = np.where(np.arange(90) % 5 == 0, -1, np.arange(90) % 3)
    val = np.where(owner < 0, np.arange(90) % 3, -1)
    split = dealt(table, owner, val=val, n_parties=6)
    how = {"model": "linear", "fraction": 0.2, "rounds": 6}
    done = train(split, table, algorithm=fedfomo(), **how)
    assert {metrics["jobs"] for metrics in done.history} == {0, 1}
    assert int(done.state.server["rounds"]) == 6
    never = tree.map(lambda leaf: leaf[3:], done.state.server["params"])
    assert same(never, tree.map(lambda leaf: leaf.expand(3, *leaf.shape[1:]), done.state.models))
