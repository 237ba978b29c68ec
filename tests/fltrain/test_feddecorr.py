"""FedDecorr: FedAvg at beta 0, the term by both scales, its gradient, models without features."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fltrain import UsageError, tree
from fltrain.algorithms import fedavg, feddecorr
from fltrain.algorithms.feddecorr import correlate
from fltrain.interface import Batch, Local
from fltrain.models import Staged
from fltrain.tasks.model_task import ModelTask

from ._replay import FULL, average, largest_gap, list_parties, make_sgd, take_steps


def test_beta_0_is_fedavg_bit_for_bit(table, table_split, train, same_state):
    a, b = (
        train(table_split, table, algorithm=f, momentum=0.9) for f in (feddecorr(beta=0), fedavg())
    )
    assert same_state(a.state, b.state)
    assert a.history == b.history


def test_sums_are_correlations_times_n_less_1_and_padding_counts_for_nothing():
    z = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sums, n = correlate(z, None)
    assert int(n) == 9
    assert torch.allclose(sums / 8, torch.corrcoef(z.T), atol=1e-7)
    mask = torch.tensor([True] * 6 + [False] * 3)
    masked, whole = correlate(z, mask), correlate(z[:6], None)
    assert torch.allclose(masked[0], whole[0], atol=1e-12)
    assert int(masked[1]) == int(whole[1]) == 6


def code(z):
    """What the authors' code computes, by one pair of features after another."""
    z = (z - z.mean(0)) / torch.sqrt(1e-8 + z.var(0))
    n, d = z.shape
    pairs = [(i, j) for i in range(d) for j in range(d) if i != j]
    return sum((z[:, i] * z[:, j]).sum() ** 2 for i, j in pairs) / len(pairs) / n


def text(z):
    z = (z - z.mean(0)) / torch.sqrt(1e-8 + z.var(0))
    correlation = z.T @ z / (len(z) - 1)
    return correlation.square().sum() / len(correlation) ** 2


@pytest.mark.parametrize(("form", "term"), [("code", code), ("text", text)])
def test_rounds_are_those_written_out_by_torch(
    form, term, table, table_split, train, double, certify
):
    """Unequal parties, momentum, weight decay; the features are what the last layer takes."""
    algorithm = feddecorr(beta=0.3, form=form)
    done = train(table_split, table, model=double(), algorithm=algorithm, local_epochs=3, **FULL)
    parties, model = list_parties(table_split, table), dict(double().state_dict())
    for _ in range(FULL["rounds"]):
        states = []
        for party in parties:
            own = double()
            own.load_state_dict(model)

            def loss(own=own, party=party):
                z = own[1](own[0](party.x))
                return F.cross_entropy(own[2](z), party.y) + 0.3 * term(z)

            take_steps(make_sgd(own.parameters()), loss, epochs=3)
            states.append(own.state_dict())
        model = average(states, parties, list(model))
    certify("feddecorr", largest_gap(tree.index(done.state.models, 0), model))


def test_the_two_forms_differ_by_the_batch_and_the_diagonal():
    """code = (n - 1)^2 / n x mean of r^2 over pairs; text = (d + d (d - 1) x that mean) / d^2."""
    z = torch.randn(20, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mean = (torch.corrcoef(z.T).square().sum() - 3) / 6
    assert float(code(z)) == pytest.approx(float(19**2 / 20 * mean), rel=1e-6)
    assert float(text(z)) == pytest.approx(float((3 + 6 * mean) / 9), rel=1e-6)


def test_one_step_by_hand():
    """Features are weights x examples: z = (w1 x, w2 x) = (x, x) for w = (1, 1), x = (-1, 0, 1): their correlation is 1.

    Sums of products of standardised features: 2; n = 3, one pair twice: the term is 2^2 / 3 = 4/3, and beta 0.3 makes 0.4.
    Scale does not change a correlation, so it has no gradient; the logits are 0 (last layer 0): cross entropy log 2.
    Of the last layer it has, with labels (0, 1, 1): for class 0 the mean of (-1/2)(-1), 0 and (1/2)(1), 1/3.
    """
    module = Staged(features=nn.Linear(1, 2, bias=False), out=nn.Linear(2, 2, bias=False)).double()
    params = {"features.weight": torch.ones(2, 1), "out.weight": torch.zeros(2, 2)}
    params = {name: w.double() for name, w in params.items()}
    local = Local(params, {}, params, {}, {}, {}, {}, {"beta": 0.3}, 0)
    x = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    step = feddecorr().direction(
        ModelTask(module), local, Batch(x, torch.tensor([0, 1, 1]), None, 0, 0)
    )
    assert float(step.loss) == pytest.approx(0.693147180560 + 0.4, abs=1e-7)
    assert float(step.grad["features.weight"].abs().max()) < 1e-7
    last = step.grad["out.weight"].flatten().tolist()
    assert last == pytest.approx([1 / 3, 1 / 3, -1 / 3, -1 / 3], abs=1e-12)


@pytest.mark.parametrize("form", ["code", "text"])
def test_a_batch_of_one_example_has_no_term(form):
    module = Staged(features=nn.Linear(1, 2), out=nn.Linear(2, 2)).double()
    params = {name: p.detach() for name, p in module.named_parameters()}
    local = Local(params, {}, params, {}, {}, {}, {}, {"beta": 0.3}, 0)
    batch = Batch(torch.ones(1, 1, dtype=torch.float64), torch.tensor([1]), None, 0, 0)
    steps = [a.direction(ModelTask(module), local, batch) for a in (feddecorr(form=form), fedavg())]
    assert largest_gap(steps[0].grad, steps[1].grad) == 0


def test_a_model_without_features_is_refused(table, table_split, train):
    with pytest.raises(UsageError, match="FedDecorr reads features"):
        train(table_split, table, model="linear", algorithm="feddecorr")
