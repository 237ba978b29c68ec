"""Rounds on torch's `meta` device, which knows shapes and no numbers: what a GPU would be asked to do."""

from collections import Counter
from dataclasses import fields, is_dataclass, replace

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fltrain.engine.jobs import Broadcast, make_jobs, sort_plan
from fltrain.runs.states import make_initial_state

META = torch.device("meta")


class Operations(TorchDispatchMode):
    """Counts what is asked of the device while it is entered.

    kernels: operations that compute or copy, by name; views only look. brought: how many tensors
    were made of numbers of the host's, for which the host waits.
    """

    def __init__(self):
        super().__init__()
        self.kernels = Counter()
        self.brought = 0
        self._made = _MadeTensors(self)

    def __enter__(self):
        self._made.__enter__()
        return super().__enter__()

    def __exit__(self, *raised):
        super().__exit__(*raised)
        self._made.__exit__(*raised)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if function is torch.ops.aten._to_copy.default and is_elsewhere(args[0], made):
            self.brought += 1
        elif not is_view(function):
            self.kernels[function.overloadpacket._qualified_op_name.removeprefix("aten::")] += 1
        return made


class _MadeTensors(TorchFunctionMode):
    """Tells of tensors made of Python's numbers, which no dispatch is seen of."""

    def __init__(self, operations):
        super().__init__()
        self.operations = operations

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        is_made = function in (torch.tensor, torch.as_tensor) and not isinstance(args[0], Tensor)
        if is_made and made.device == META:
            self.operations.brought += 1
        return made


def is_elsewhere(value, made):
    return isinstance(value, Tensor) and value.device != made.device


def is_view(function):
    """Whether an operation's answer is memory of what it is given, and nothing is written there."""
    if function is torch.ops.aten._unsafe_view.default:
        return True
    returned = [one.alias_info for one in function._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returned)


def bring(value, numbers=True):
    """A value as it is where a run trains on the meta device: its tensors are there.

    numbers: single ones too. A plan may leave those on the host, of which a device takes them without a wait.
    """
    if isinstance(value, Tensor):
        return value.to(META) if value.ndim or numbers else value
    if isinstance(value, dict):
        return {name: bring(part, numbers) for name, part in value.items()}
    if is_dataclass(value):
        moved = {one.name: bring(getattr(value, one.name)) for one in fields(value)}
        return replace(value, **moved)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(bring(part) for part in value)
    return value


def plan_round(cell, round=1):
    """The state that a run begins with and a plan of all parties, on the host."""
    state = make_initial_state(cell)
    everyone = torch.arange(cell.data.n_parties)
    plan = cell.algorithm.plan(state, everyone, round, cell.algorithm.hyper)
    return state, sort_plan(plan, cell.data)


def rehearse(cell, round=1):
    """(cell, broadcast, jobs) of all parties of a cell, on the meta device."""
    state, plan = plan_round(cell, round)
    jobs = make_jobs(0, cell, state, plan, round)
    there = replace(
        cell, data=replace(cell.data, train=bring(cell.data.train), test=bring(cell.data.test))
    )
    broadcast = Broadcast(
        round, bring(state.models), bring(state.buffers), bring(plan.shared, numbers=False)
    )
    moved = [
        job._replace(each=bring(job.each), own=bring(job.own), optimizer=bring(job.optimizer))
        for job in jobs
    ]
    moved.sort(key=lambda job: -job.work.steps)  # as a stack has them
    return there, broadcast, moved
