"""The state before the first round."""

from dataclasses import replace

import torch

from niidpart.errors import UsageError
from niidpart.heterogeneity import map_beta

from .. import tree
from ..engine.device_memory import GIB, free_memory
from ..engine.jobs import Cell
from ..engine.updates import OPTIMIZER, make_kept_rows
from ..interface import Info, State
from ..tasks.unlike_task import UnlikeTask
from ..tree import Tree
from .new_models import list_candidates


def make_initial_state(cell: Cell) -> State:
    """Return the state of round 0.

    A frozen parameter (requires_grad=False) is a buffer: used, averaged, not trained. UsageError
    where the state does not fit into memory, and where it has nothing for parties held out.
    """
    models, buffers = cell.task.make_starts()
    info = _inform(cell)
    _require_memory(cell, info, models, buffers)
    state = cell.algorithm.init(cell.task, info, models, buffers, cell.algorithm.hyper)
    if cell.data.new_parties is not None:
        list_candidates(cell, state)
    return _add_optimizers(cell, state, len(info.n))


def _add_optimizers(cell: Cell, state: State, n_parties: int) -> State:
    """Return the state with what the parties keep of their optimisers, where they do."""
    algorithm = cell.algorithm
    trained, _ = cell.task.split_weights()
    rows = make_kept_rows(algorithm, cell.settings, trained, n_parties)
    if not rows:
        return state
    if OPTIMIZER in state.parties:
        raise UsageError(
            f"{algorithm.name} keeps {OPTIMIZER!r} at the parties, where --keep-optimizer keeps "
            "what the optimiser has; call it otherwise"
        )
    return replace(state, parties=state.parties | rows)


def _inform(cell: Cell) -> Info:
    """Return what an algorithm knows before training."""
    counts = cell.data.counts
    return Info(
        n=counts.sum(1),
        counts=counts,
        beta=torch.from_numpy(map_beta(counts.numpy())),
        shape=cell.data.shape,
        seed=cell.settings.seed,
        lr=cell.settings.lr,
        model=_find_starts(cell),
    )


def _find_starts(cell: Cell) -> torch.Tensor:
    """Return for each party the place of its model among those that runs start from."""
    parties = range(cell.data.n_parties)
    if isinstance(cell.task, UnlikeTask):
        # dealt to all parties of the split, of which some may be held out
        of_party = cell.task.of_party
        return torch.tensor([of_party[cell.data.find_number(party)] for party in parties])
    return torch.zeros(len(parties), dtype=torch.int64)


def _require_memory(cell: Cell, info: Info, models: Tree, buffers: Tree) -> None:
    """Raise UsageError where what the parties keep does not fit into memory.

    Before it is asked for: a system may grant it and kill the run later.
    """
    algorithm = cell.algorithm
    n_parties, free = len(info.n), free_memory(cell.data.train.y.device)
    of_model = tree.nbytes(models) + tree.nbytes(buffers)
    if n_parties * 4 * of_model < free:
        return

    def count_kept(parties: int) -> int:
        few = info._replace(
            n=info.n[:parties],
            counts=info.counts[:parties],
            beta=info.beta[:parties],
            model=None if info.model is None else info.model[:parties],
        )
        state = algorithm.init(cell.task, few, models, buffers, algorithm.hyper)
        return tree.nbytes(_add_optimizers(cell, state, parties).parties)

    # The difference: what is kept once, however many parties there are, cancels out.
    each = count_kept(2) - count_kept(1)
    if n_parties * each > free:
        raise UsageError(
            f"{algorithm.name} keeps {each / GIB:.3g} GiB at each of {n_parties} parties, "
            f"{n_parties * each / GIB:.3g} GiB in all, and {free / GIB:.3g} GiB are free; "
            f"take a smaller --model, a split of fewer parties (at most {int(free // each)}), "
            "an algorithm that keeps nothing at the parties, such as fedavg, or no --keep-optimizer"
        )
