"""The local training of one job, by calls of compiled code."""

import ctypes
import math

import torch
from torch import Tensor

from ...optimizers import find_optimizer
from ...tasks.losses import SmoothedCrossEntropy
from ..jobs import Cell, Job
from ..rates import list_rates
from ..updates import list_numbers
from .arguments import BYTES, StepArguments, address_of
from .flat_job import FlatJob
from .layers import LayerTable
from .portions import Portion, iterate_portions


def train_flat_job(
    library: ctypes.CDLL,
    layers: LayerTable,
    cell: Cell,
    job: Job,
    flat: FlatJob,
    round: int,
    stop: ctypes.c_int32,
) -> float:
    """Train the numbers of a job in place, and return the summed loss of its steps.

    stop: looked at between two steps; 1 ends the training. MemoryError where there is none for a
    batch.
    """
    rates = torch.tensor(list_rates(cell.settings, int(job.work.steps), round), dtype=torch.float64)
    arguments = _describe_job(cell, job, flat, layers)
    arguments.stop = ctypes.addressof(stop)
    losses = []
    for portion in iterate_portions(cell.data.train, job, round, cell.settings):
        _add_portion(arguments, portion, rates, flat.taken)
        loss = ctypes.c_double()
        # the call lets go of Python's lock, so that threads run at once
        if library.fltrain_train(ctypes.byref(arguments), ctypes.byref(loss)):
            raise MemoryError(
                "engine native found no memory for the tensors of a batch of party "
                f"{cell.data.find_number(job.party)}; lower --workers or --batch-size"
            )
        losses.append(loss.value)
    return math.fsum(losses)


def _describe_job(cell: Cell, job: Job, flat: FlatJob, layers: LayerTable) -> StepArguments:
    """Return the arguments that all calls for a job have in common."""
    settings, loss = cell.settings, cell.task.loss
    optimizer = find_optimizer(settings.optimizer)
    numbers = list_numbers(optimizer, cell.algorithm, settings, job.work)
    beta1, beta2 = numbers.get("betas", (0.0, 0.0))
    # each slot of an optimiser has the name of its argument
    slots = {slot: address_of(row) for slot, row in flat.slots.items()}
    return StepArguments(
        ops=address_of(layers.ops),
        n_ops=len(layers.ops),
        parameters=flat.w.numel(),
        w=address_of(flat.w),
        **slots,
        start=address_of(flat.start),
        add=address_of(flat.add),
        after=address_of(flat.after),
        beta1=beta1,
        beta2=beta2,
        eps=numbers.get("eps", 0.0),
        momentum=numbers.get("momentum", 0.0),
        decay=numbers["weight_decay"],
        pull=flat.pull,
        smoothing=loss.smoothing if isinstance(loss, SmoothedCrossEntropy) else 0.0,
        clip_norm=settings.clip_norm or 0.0,
        clip_value=settings.clip_value or 0.0,
        nesterov=numbers.get("nesterov", False),
        decoupled=settings.optimizer == "adamw",
        batch=settings.batch_size,
        accumulate=settings.accumulate,
    )


def _add_portion(arguments: StepArguments, portion: Portion, rates: Tensor, taken: int) -> None:
    """Set what the next call is to do. rates: of all steps of the job; taken: before the job."""
    arguments.features = portion.x[0].numel()
    arguments.x = address_of(portion.x)
    arguments.bytes = address_of(BYTES) if portion.x.dtype == torch.uint8 else None
    arguments.y = address_of(portion.y)
    arguments.order = address_of(portion.order)
    arguments.per_epoch = portion.per_epoch
    arguments.rates = address_of(rates[portion.begin :])
    arguments.taken = taken + portion.begin
    arguments.steps = portion.steps
