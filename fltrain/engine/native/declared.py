"""What an algorithm declares of its direction, as the compiled code takes it."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ...directions.affine import Affine, AffineDirection
from ...directions.ascent import DUAL, LEAST_LENGTH, AscentDirection, OffsetDirection
from ...directions.class_logits import ClassLogits, LogitsDirection
from ...directions.envelope import THETA, Envelope, EnvelopeDirection
from ...directions.local_rule import LocalRule, LocalRuleDirection
from ...directions.loss_terms import (
    Contrast,
    ContrastDirection,
    DistanceDirection,
    StageDistance,
    Teacher,
)
from ...interface import Local
from ...tree import Tree
from .arguments import AscentArguments, EnvelopeArguments, TermArguments
from .layers import LayerTable
from .taps import Read

Direction = (
    AffineDirection
    | AscentDirection
    | ContrastDirection
    | DistanceDirection
    | EnvelopeDirection
    | LocalRuleDirection
    | LogitsDirection
    | OffsetDirection
)
# What each kind of direction reads besides the logits.
READS: dict[type, Read] = {
    AffineDirection: "nothing",
    AscentDirection: "nothing",
    ContrastDirection: "features",
    DistanceDirection: "stages",
    LocalRuleDirection: "stages",
    EnvelopeDirection: "nothing",
    OffsetDirection: "nothing",
    LogitsDirection: "nothing",
}
# `TermKind` and `Moves` of declared.h.
_CONTRAST, _BY_CLASS, _LOGITS = 0, 4, 5
_NORMS = {"mean_l2": 1, "l2": 2, "mean_sq": 3}
_MOVES = {"never": 0, "batch": 1, "epoch": 2}


class Declared(NamedTuple):
    """A direction for one job.

    term, envelope, ascent: None for none. rows: tensors whose addresses stand in them, which have
    to outlive the calls. carried: those of `Local.carry` that are trained in place, by name.
    """

    affine: Affine = Affine()
    term: TermArguments | None = None
    envelope: EnvelopeArguments | None = None
    ascent: AscentArguments | None = None
    rows: tuple[Tensor | None, ...] = ()
    carried: Mapping[str, Tensor] = MappingProxyType({})


class Flatten(NamedTuple):
    """How trees become rows: of parameters, and of buffers, None where there are none.

    A row of parameters may be shared with others, and is not to be changed.
    """

    parameters: Callable[[Tree], Tensor]
    buffers: Callable[[Tree], Tensor | None]


def declare(direction: Direction, local: Local, flatten: Flatten, layers: LayerTable) -> Declared:
    """Return what a direction declares for a job, after the algorithm's `begin`."""
    if isinstance(direction, AffineDirection):
        return Declared(affine=direction.terms(local))
    if isinstance(direction, ContrastDirection):
        return _declare_contrast(direction.contrast(local), flatten)
    if isinstance(direction, DistanceDirection):
        return _declare_distance(direction.distance(local), flatten, layers)
    if isinstance(direction, LocalRuleDirection):
        return _declare_rule(direction.rule(local), layers)
    if isinstance(direction, AscentDirection):
        return _declare_ascent(direction, local, flatten)
    if isinstance(direction, OffsetDirection):
        return _declare_offset(direction, local, flatten)
    if isinstance(direction, LogitsDirection):
        return _declare_logits(direction.change(local))
    return _declare_envelope(direction.envelope(local), local, flatten)


def _declare_contrast(contrast: Contrast, flatten: Flatten) -> Declared:
    weight = float(contrast.weight)
    if not weight:
        return Declared()  # the teachers need not be asked
    term = TermArguments(kind=_CONTRAST, weight=weight, temperature=float(contrast.temperature))
    return _add_teachers(term, [contrast.towards, contrast.away], flatten)


def _declare_distance(distance: StageDistance, flatten: Flatten, layers: LayerTable) -> Declared:
    weight = float(distance.weight)
    if not weight:
        return Declared()
    term = TermArguments(
        kind=_NORMS[distance.norm],
        first=distance.first % len(layers.taps),
        moves=_MOVES[distance.moves],
        weight=weight,
    )
    return _add_teachers(term, [distance.to], flatten)


def _add_teachers(term: TermArguments, teachers: list[Teacher], flatten: Flatten) -> Declared:
    rows: list[Tensor | None] = []
    for place, teacher in enumerate(teachers):
        weights, buffers = flatten.parameters(teacher.params), flatten.buffers(teacher.buffers)
        term.weights[place] = weights.data_ptr()
        term.buffers[place] = None if buffers is None else buffers.data_ptr()
        rows += [weights, buffers]
    return Declared(term=term, rows=tuple(rows))


def _declare_rule(rule: LocalRule, layers: LayerTable) -> Declared:
    *hidden, n_classes = layers.taps
    sizes = [pull.numel() for pull in rule.pulls]
    needed = [n_classes * size for size in hidden]
    if sizes != needed:
        raise UsageError(
            f"the pulls of a local rule are of {sizes} numbers; {needed} are needed, one for each "
            "class and output of each hidden stage"
        )
    flat = [pull.detach().reshape(-1) for pull in rule.pulls]
    row = torch.cat(flat).float() if flat else torch.zeros(1)
    return Declared(term=TermArguments(kind=_BY_CLASS, pulls=row.data_ptr()), rows=(row,))


def _declare_logits(change: ClassLogits) -> Declared:
    row = torch.cat([change.scale, change.offset]).detach().float()
    return Declared(term=TermArguments(kind=_LOGITS, pulls=row.data_ptr()), rows=(row,))


def _declare_envelope(envelope: Envelope, local: Local, flatten: Flatten) -> Declared:
    theta = flatten.parameters(local.carry[THETA]).clone()
    arguments = EnvelopeArguments(
        theta=theta.data_ptr(),
        steps=envelope.steps,
        lr=float(envelope.lr),
        pull=float(envelope.pull),
        decay=float(envelope.decay),
    )
    return Declared(envelope=arguments, carried={THETA: theta})


def _declare_offset(direction: OffsetDirection, local: Local, flatten: Flatten) -> Declared:
    offset = flatten.parameters(direction.offset(local))
    at = torch.empty_like(offset)
    arguments = AscentArguments(at=at.data_ptr(), offset=offset.data_ptr(), mix=1.0)
    affine = direction.terms(local)
    return Declared(affine=affine, ascent=arguments, rows=(at, offset))


def _declare_ascent(direction: AscentDirection, local: Local, flatten: Flatten) -> Declared:
    ascent = direction.ascent(local)
    at = torch.empty(sum(leaf.numel() for leaf in local.params.values()))
    arguments = AscentArguments(
        at=at.data_ptr(),
        rho=float(ascent.rho),
        mix=float(ascent.mix),
        eta=float(ascent.eta),
        least=LEAST_LENGTH,
    )
    rows, carried = [at], {}
    if ascent.sized:
        sized = flatten.parameters(_mark_names(ascent.sized, local.params))
        arguments.sized = sized.data_ptr()
        rows.append(sized)
    if ascent.common:
        common = flatten.parameters(ascent.common)
        dual = flatten.parameters(local.carry[DUAL]).clone()
        arguments.common, arguments.dual = common.data_ptr(), dual.data_ptr()
        rows.append(common)
        carried[DUAL] = dual
    affine = direction.terms(local)
    return Declared(affine=affine, ascent=arguments, rows=tuple(rows), carried=carried)


def _mark_names(names: Sequence[str], like: Tree) -> Tree:
    """Return 1 for the numbers of these parameters, else 0."""
    return {
        name: torch.ones_like(leaf) if name in names else torch.zeros_like(leaf)
        for name, leaf in like.items()
    }
