"""Many models scored side by side, or one on the parts of many parties.

What is asked for is cut into pieces of whole batches and powers of two: pieces of one size go
together without padding, which a loss or a batch norm of one's own might see.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ... import tree
from ...interface import Batch
from ...tree import Tree
from ..scoring import Candidate, evaluation_batch_size
from .stackable import strict_vmap
from .task import StackedTask
from .trees import stack_trees

# Bytes of weights that are laid side by side for one call.
_WEIGHTS = 1 << 30


class _ScoredPiece(NamedTuple):
    """Examples start..start + size of a candidate, by its place."""

    candidate: int
    start: int
    size: int


class PieceScores(NamedTuple):
    """What pieces of one size came to: right [R] and loss [R], summed; places: of candidates."""

    places: list[int]
    right: Tensor
    loss: Tensor


def score_together(task: StackedTask, candidates: Sequence[Candidate]) -> list[tuple[int, float]]:
    """Return (number right, summed loss) of each candidate; the host waits once."""
    rights = [0] * len(candidates)
    losses = [0.0] * len(candidates)
    scores = list(sum_scores(task, candidates))
    if not scores:
        return list(zip(rights, losses, strict=True))
    right = torch.cat([one.right for one in scores]).tolist()
    loss = torch.cat([one.loss for one in scores]).tolist()
    places = [place for one in scores for place in one.places]
    for place, its_right, its_loss in zip(places, right, loss, strict=True):
        rights[place] += its_right
        losses[place] += its_loss
    return list(zip(rights, losses, strict=True))


def sum_scores(task: StackedTask, candidates: Sequence[Candidate]) -> Iterator[PieceScores]:
    """Yield the scores of all pieces, still on the device."""
    for some in _group_pieces(candidates):
        its_candidates = [candidates[piece.candidate] for piece in some]
        right, loss = _score_pieces(task, its_candidates, some)
        yield PieceScores([piece.candidate for piece in some], right, loss)


def can_score_together(task: StackedTask, candidate: Candidate) -> bool:
    """Return whether the model answers for many at once, tried on one example."""
    pieces = [_ScoredPiece(0, candidate.start, 1)] * 2
    try:
        with strict_vmap():
            _score_pieces(task, [candidate, candidate._replace(model=None)], pieces)
    except Exception:  # scored by itself it works, or says what is wrong
        return False
    return True


def _group_pieces(candidates: Sequence[Candidate]) -> Iterator[list[_ScoredPiece]]:
    """Yield pieces that go together: of one size and the same examples.

    Those of one model by themselves, where there are several: its weights are then there once.
    """
    alike: dict[tuple[int, int], dict[int, list[_ScoredPiece]]] = {}
    asked = Counter(id(candidate.examples) for candidate in candidates)
    for place, candidate in enumerate(candidates):
        is_alone = asked[id(candidate.examples)] == 1
        most = evaluation_batch_size(candidate.examples.y.device)
        # unknown models have numbers of their own
        model = -1 - place if candidate.model is None else candidate.model
        for piece in _cut(place, candidate, most, is_alone):
            kind = id(candidate.examples), piece.size
            alike.setdefault(kind, {}).setdefault(model, []).append(piece)
    for (_, size), by_model in alike.items():
        shared = [pieces for pieces in by_model.values() if len(pieces) > 1]
        single = [pieces[0] for pieces in by_model.values() if len(pieces) == 1]
        first = next(iter(by_model.values()))[0]
        candidate = candidates[first.candidate]
        at_once = max(1, evaluation_batch_size(candidate.examples.y.device) // size)
        for pieces in shared:
            yield from _cut_list(pieces, at_once)
        n_models = max(1, _WEIGHTS // max(1, tree.nbytes(candidate.params)))
        yield from _cut_list(single, min(at_once, n_models))


def _cut(place: int, candidate: Candidate, most: int, is_alone: bool) -> Iterator[_ScoredPiece]:
    """Yield a candidate's examples in pieces of `most`, then of powers of two that fall.

    is_alone: whether nothing could go with the rest, which is then one piece.
    """
    at, end = candidate.start, candidate.end
    while at < end:
        left = end - at
        size = min(most, left)
        if size < most and not is_alone:
            size = 1 << (left.bit_length() - 1)
        yield _ScoredPiece(place, at, size)
        at += size


def _cut_list(pieces: list[_ScoredPiece], size: int) -> Iterator[list[_ScoredPiece]]:
    for at in range(0, len(pieces), size):
        yield pieces[at : at + size]


@torch.no_grad()
def _score_pieces(
    task: StackedTask, candidates: Sequence[Candidate], pieces: Sequence[_ScoredPiece]
) -> tuple[Tensor, Tensor]:
    """Return (number right, summed loss) of pieces of one size, [R] each.

    candidates: whose pieces these are, one for each.
    """
    first = candidates[0]
    examples = first.examples
    device, size = examples.y.device, pieces[0].size
    starts = torch.tensor([piece.start for piece in pieces]).to(device)
    at = starts.unsqueeze(1) + torch.arange(size, device=device)
    x = examples.inputs(at.flatten())
    x = x.reshape(*at.shape, *x.shape[1:])
    params, buffers = first.params, first.buffers
    models = {candidate.model for candidate in candidates}
    is_one = len(pieces) == 1 or (len(models) == 1 and None not in models)
    if not is_one:
        params = stack_trees([candidate.params for candidate in candidates])
        buffers = stack_trees([candidate.buffers for candidate in candidates])

    def score_piece(params: Tree, buffers: Tree, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        out = task.forward(params, buffers, x, train=False)
        right = (out.logits.argmax(1) == y).sum()
        batch = Batch(x=out.logits, y=y, mask=None, epoch=0, step=0)
        return right, task.test_loss(out, batch).double() * size

    axis = None if is_one else 0
    score_all = torch.func.vmap(score_piece, in_dims=(axis, axis, 0, 0))
    right, loss = score_all(params, buffers, x, examples.y[at])
    return right, loss
