"""Answers of a model, counted by compiled code: the forward pass alone."""

import ctypes
import math
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from ...inputs.federated import PartyExamples
from ...tree import Tree
from .arguments import BYTES, StepArguments, address_of, flatten_parameters
from .layers import LANES, LayerTable

_PIECE = 512  # examples of a call: some milliseconds of work, so that threads end together and none of them waits for Python


def score_examples(
    library: ctypes.CDLL,
    layers: LayerTable,
    pool: ThreadPoolExecutor,
    params: Tree,
    examples: PartyExamples,
    start: int,
    end: int,
) -> tuple[int, float]:
    """(number right, summed loss) of one model on examples start..end, in pieces that do not depend on the number of threads.

    MemoryError where there is none for a batch.
    """
    w = flatten_parameters(params, layers)
    pieces = [slice(a, min(a + _PIECE, end)) for a in range(start, end, _PIECE)]
    over = (
        pool.map if len(pieces) > 1 else map
    )  # a few examples are done sooner than a thread would begin with them
    scores = list(over(lambda at: _piece(library, layers, w, examples, at), pieces))
    return sum(right for right, _ in scores), math.fsum(loss for _, loss in scores)


def _piece(
    library: ctypes.CDLL, layers: LayerTable, w: Tensor, examples: PartyExamples, at: slice
) -> tuple[int, float]:
    prepare = examples.prepare  # augmentation is of training alone
    plain = prepare.normalise is None and not prepare.noise
    x = (examples.x[at] if plain else examples.inputs(at).float()).contiguous()
    y = examples.y[at].contiguous()
    order, right, loss = torch.arange(len(y)), ctypes.c_int64(), ctypes.c_double()
    asked = StepArguments(
        ops=address_of(layers.ops),
        n_ops=len(layers.ops),
        features=x[0].numel(),
        parameters=w.numel(),
        w=address_of(w),
        x=address_of(x),
        bytes=address_of(BYTES) if x.dtype == torch.uint8 else None,
        y=address_of(y),
        order=address_of(order),
        per_epoch=len(y),
        batch=min(LANES, len(y)),
    )
    if library.fltrain_score(ctypes.byref(asked), ctypes.byref(right), ctypes.byref(loss)):
        raise MemoryError(
            "engine native found no memory for the tensors of a batch of evaluation; lower --workers"
        )
    return right.value, loss.value
