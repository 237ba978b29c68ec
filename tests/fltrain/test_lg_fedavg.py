"""LG-FedAvg: what is named travels, all else stays; the same partition as FedPer's, read from the other side."""

import numpy as np
import pytest

import niidpart
from fltrain import UsageError
from fltrain.algorithms import fedper, lg_fedavg

from ._replay import FULL, list_parties
from .test_fedper import HARD, HEAD, TwoNumbers, measure_beside_torch, normed

__all__ = ["normed"]  # a fixture

# What the shared tests try besides (`_variants.py`).
VARIANTS = [{"shared": "bias"}]


def test_lg_fedavg_shares_what_is_named_and_keeps_the_rest(
    table, table_split, train, normed, same_state
):
    a, b = (
        train(table_split, table, model=normed, algorithm=f, **HARD)
        for f in (lg_fedavg(), fedper(own="0+1"))
    )
    assert a.state.models.keys() == HEAD
    assert same_state(a.state, b.state)
    assert a.history == b.history
    assert a.history[0]["bytes_up"] == 4 * 4 * 27


def test_sharing_all_is_refused(table, table_split, train, normed):
    with pytest.raises(UsageError, match="leaves the parties of lg-fedavg nothing of their own"):
        train(table_split, table, model=normed, algorithm=lg_fedavg(shared="0+1+3"), **HARD)
    with pytest.raises(UsageError, match="no layer of the model is named 'fc'"):
        train(table_split, table, model=normed, algorithm=lg_fedavg(shared="fc"), **HARD)


def test_rounds_are_those_written_out_by_torch(table, table_split, train, double, certify):
    """Unequal parties, momentum, weight decay; torch's own SGD over all parameters of a party."""
    done = train(table_split, table, model=double(), algorithm=lg_fedavg(), local_epochs=3, **FULL)
    parties = list_parties(table_split, table)
    certify("lg-fedavg", measure_beside_torch(done, parties, double, own=["0.weight", "0.bias"]))


def test_one_step_by_hand(dealt, train):
    """The example of test_fedper.py with s shared: s = (s_0 + 3 s_1) / 4 = 0.999603973838, and each keeps its w."""
    two = (np.array([[1.0], [2.0], [2.0], [2.0]], np.float32), np.array([0, 1, 1, 1]))
    data = niidpart.from_arrays(*two, *two)
    how = {"model": TwoNumbers(), "algorithm": lg_fedavg(shared="scale"), "rounds": 1, "lr": 0.1}
    state = train(dealt(data, [0, 1, 1, 1]), data, momentum=0.0, **how).state
    assert float(state.models["scale.weight"]) == pytest.approx(0.999603973838, abs=1e-12)
    assert state.parties["params"]["line.weight"].flatten().tolist() == pytest.approx(
        [0.926894142137, 1.023840584404], abs=1e-12
    )
