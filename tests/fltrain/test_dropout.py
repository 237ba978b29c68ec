"""Dropout by counter: the chances, what goes together, what the draws depend on and what not."""

import copy
import pickle

import pytest
import torch
from scipy import stats
from torch import nn

from fltrain import tree
from fltrain.draws import key
from fltrain.interface import Batch, Local
from fltrain.tasks.dropout import draw_by, list_dropouts, replace_dropouts
from fltrain.tasks.model_task import ModelTask

KINDS = {
    nn.Dropout: (8, 6, 5),
    nn.Dropout1d: (8, 6, 5),
    nn.Dropout2d: (8, 6, 5, 4),
    nn.Dropout3d: (8, 6, 3, 2, 4),
}
KEY = key(0, "draws", 1, 2, 0)
RARE = 1e-4


def layer(kind=nn.Dropout, p=0.3, **options):
    return replace_dropouts(kind(p, **options))


def dropped(module, x, key=KEY):
    with draw_by(list_dropouts(module), key):
        return module(x)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_each_number_stays_with_chance_1_minus_p_and_is_scaled_so_that_the_mean_stays(p):
    """x = 1: mean 1 and variance p / (1 - p), of 400,000 numbers."""
    n = 400_000
    out = dropped(layer(p=p), torch.ones(n // 100, 100, dtype=torch.float64))
    assert sorted(out.unique().tolist()) == [0.0, 1 / (1 - p)]
    assert stats.binomtest(int((out > 0).sum()), n, 1 - p).pvalue > RARE
    assert float(out.var()) == pytest.approx(p / (1 - p), rel=0.03)
    kept = (out > 0).double()
    for axis in (0, 1):  # neighbours are independent
        a, b = (
            kept.narrow(axis, 0, kept.shape[axis] - 1),
            kept.narrow(axis, 1, kept.shape[axis] - 1),
        )
        assert (
            abs(float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])) < 4 / n**0.5
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_ends_of_the_range(kind, p):
    x = torch.randn(KINDS[kind], generator=torch.Generator().manual_seed(0))
    assert torch.equal(dropped(layer(kind, p), x), x * (1 - p))


@pytest.mark.parametrize("kind", [nn.Dropout1d, nn.Dropout2d, nn.Dropout3d])
def test_a_channel_goes_or_stays_as_a_whole(kind):
    out = dropped(layer(kind, 0.4), torch.ones(200, 30, *KINDS[kind][2:]))
    flat = out.flatten(2)
    assert (flat == flat[..., :1]).all()
    assert stats.binomtest(int((flat[..., 0] > 0).sum()), 6000, 0.6).pvalue > RARE


@pytest.mark.parametrize(
    ("kind", "shape", "whole"),
    [(nn.Dropout1d, (40, 9), 1), (nn.Dropout2d, (40, 9, 5), 2), (nn.Dropout3d, (40, 9, 5, 4), 1)],
)
def test_with_an_axis_less_the_same_goes_together_as_with_torch(kind, shape, whole, recwarn):
    """Axes of the result that are all 0 or all not: torch reads [C, L] and [C, D, H, W] as one example, but [B, C, L] of a Dropout2d as a batch."""
    theirs, ours = kind(0.5)(torch.ones(shape)), dropped(layer(kind, 0.5), torch.ones(shape))
    for out in (theirs, ours):
        flat = out.flatten(whole)
        assert (flat == flat[..., :1]).all()
        assert 0 < float((out > 0).double().mean()) < 1
    assert (ours.flatten(whole)[..., 0].unique() == theirs.flatten(whole)[..., 0].unique()).all()


@pytest.mark.parametrize("kind", KINDS)
def test_padding_behind_changes_nothing(kind):
    x = torch.randn(KINDS[kind], generator=torch.Generator().manual_seed(0))
    padded = torch.cat([x, torch.ones(5, *x.shape[1:])])
    assert torch.equal(dropped(layer(kind), padded)[: len(x)], dropped(layer(kind), x))


@pytest.mark.parametrize("kind", KINDS)
def test_under_vmap_the_same_as_one_by_one(kind):
    """Keys as int64 tensors, some negative, against python's unsigned ones."""
    keys = torch.tensor([-1, 5, -(2**63), 2**63 - 1])
    x = torch.randn(
        4, *KINDS[kind], generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    module = replace_dropouts(nn.Sequential(kind(0.3), nn.Identity(), kind(0.5)))
    together = torch.func.vmap(lambda x, key: dropped(module, x, key))(x, keys)
    for j in range(4):
        assert torch.equal(dropped(module, x[j], int(keys[j]) % 2**64), together[j])
    assert not torch.equal(together[0] == 0, together[1] == 0)


def test_the_draws_depend_on_the_key_and_the_layer_and_on_nothing_else():
    x, module = (
        torch.ones(50, 40),
        replace_dropouts(
            nn.ModuleList([nn.Dropout(), nn.Dropout(), nn.Dropout2d(), nn.AlphaDropout()])
        ),
    )
    first, second = module[0], module[1]
    with draw_by(list_dropouts(module), KEY):
        torch.manual_seed(0)
        a = first(x)
        torch.rand(7)
        b, again = second(x), first(x)
    assert not torch.equal(a, b)
    assert not torch.equal(a, again)  # a layer that stands at two places draws twice
    with draw_by(list_dropouts(module), KEY):
        assert torch.equal(second(x), b)
        assert torch.equal(first(x), a)
    assert not torch.equal(dropped(first, x, KEY ^ 1), a)
    assert type(module[3]) is nn.AlphaDropout


@pytest.mark.parametrize("kind", KINDS)
def test_in_eval_mode_or_without_a_key_it_is_torchs(kind):
    x, ours, theirs = torch.ones(KINDS[kind]), layer(kind), kind(0.3)
    for mode in (True, False):
        outs = []
        for module in (ours.train(mode), theirs.train(mode)):
            with torch.random.fork_rng():
                torch.manual_seed(4)
                outs.append(module(x))
        assert torch.equal(*outs)
        assert torch.equal(outs[0], x) != mode
    assert torch.equal(dropped(ours, x), x)
    dropped(ours.train(), x)
    assert ours.key is None


def test_a_pass_that_fails_leaves_no_key_behind():
    module = replace_dropouts(nn.Sequential(nn.Dropout(), nn.Linear(3, 2)))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        dropped(module, torch.ones(2, 5))
    assert module[0].key is None


class Sub(nn.Dropout):
    """A user's own, which is left alone."""


def test_the_copy_keeps_names_weights_options_and_shared_layers():
    shared = nn.Dropout(0.2, inplace=True)
    module = nn.Sequential(
        nn.Linear(3, 4), shared, nn.BatchNorm1d(4), nn.Sequential(shared, Sub(0.4), nn.Dropout(0.1))
    ).eval()
    seen = []
    module[3][2].register_forward_hook(lambda *_: seen.append(1))
    ours = replace_dropouts(module)
    assert type(module[1]) is nn.Dropout
    assert [(d.p, d.inplace, d.number, d.training) for d in list_dropouts(ours)] == [
        (0.2, True, 0, False),
        (0.1, False, 1, False),
    ]
    assert ours[1] is ours[3][0]
    assert type(ours[3][1]) is Sub
    assert isinstance(ours[1], nn.Dropout)
    assert list(ours.state_dict()) == list(module.state_dict())
    assert all(
        torch.equal(a, b)
        for a, b in zip(ours.state_dict().values(), module.state_dict().values(), strict=True)
    )
    ours(torch.ones(2, 3))
    assert seen == [1]
    assert replace_dropouts(ours) is ours  # nothing is left to replace
    for twin in (
        copy.deepcopy(ours),
        pickle.loads(pickle.dumps(replace_dropouts(nn.Sequential(nn.Dropout(0.3))))),
    ):
        assert all(type(d).__module__ == "fltrain.tasks.dropout" for d in list_dropouts(twin))


def test_a_dropout_may_be_the_whole_module():
    assert ModelTask(nn.Dropout()).module.number == 0


def test_a_module_without_dropout_is_taken_as_it_is():
    module = nn.Linear(2, 2)
    assert ModelTask(module).module is module


# In a task


def job(key=KEY):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        task = ModelTask(
            nn.Sequential(
                nn.Linear(6, 9), nn.Dropout(), nn.Tanh(), nn.Dropout(0.2), nn.Linear(9, 3)
            ).double()
        )
    params = {n: p.detach() for n, p in task.module.named_parameters()}
    return task, Local(params, {}, params, {}, {}, {}, {}, {}, key)


def batch(step=0, mask=None, rows=7):
    x = torch.randn(7, 6, generator=torch.Generator().manual_seed(9), dtype=torch.float64)[:rows]
    return Batch(x, torch.arange(rows) % 3, mask, 0, step)


def test_a_gradient_depends_on_job_and_step_and_on_no_generator(same):
    task, local = job()
    a = task.grad(local, batch()).grad
    torch.manual_seed(77)
    assert same(task.grad(local, batch()).grad, a)
    assert not same(task.grad(local, batch(step=1)).grad, a)
    assert not same(task.grad(local._replace(key=KEY + 1), batch()).grad, a)


def test_padded_rows_change_no_gradient(distance):
    task, local = job()
    mask = torch.arange(7) < 5
    a, b = (task.grad(local, given).grad for given in (batch(rows=5), batch(mask=mask)))
    assert distance(a, b) < 1e-15
    assert max(float(leaf.abs().max()) for leaf in tree.leaves(a)) > 0.01


def test_a_module_taken_out_of_a_finished_run_drops_at_random(table, table_split, train):
    model = nn.Sequential(nn.Linear(6, 20), nn.Dropout(0.5), nn.Linear(20, 3))
    out = train(table_split, table, model=model).model()
    x = torch.ones(4, 6)
    assert torch.equal(out(x), out(x))
    out.train()
    assert not torch.equal(out(x), out(x))
