"""Learning by neuromodulation instead of backpropagation."""

import math
from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..draws import fold, key, uniform
from ..interface import Algorithm, Batch, Info, Local, Plan, State, Step, Task
from ..tree import Tree
from .fedavg import fedavg

__all__ = ["fednaca"]


def fednaca(
    level: Annotated[
        float, "Level of the neuromodulator at which the modulation crosses 0, above 0."
    ] = 0.5,
    theta_max: Annotated[float, "Height of the modulation, at least 1."] = 1.2,
) -> Algorithm:
    """FedNACA: FedAvg of models that learn by NACA's local rule. Zhang et al., Science Advances 2023; as a baseline Cha, Chang, Information 2025.

    No gradient passes from one stage into the one before. In place of a gradient, a hidden stage with output h gets sum_b theta(N) dh/dw, for
    a sigmoid layer theta s'(a) input^T, whatever the loss; w -= lr times that. N [B, units] is the level of a neuromodulator, which the class
    of an example decides: E(y) Lambda, with Lambda [2K, units] ~ U[0, 1] for each hidden stage from the run's seed, the same at all parties,
    never trained. The output stage gets the gradient of the squared error of s(logits) to the one-hot class, a mean over B and K (as in both
    codes; NACA's class-incremental one sums it): that is the loss reported. The rule is made for stages that end in a sigmoid, --model twonn
    or naca-cnn. Sums over the batch make a hidden step about B K / 2 times an output step, so lr is not that of backpropagation: 5e-4 in the
    code of Cha and Chang.

    level: L of `theta`. ValueError: level <= 0, theta_max < 1, or a model that does not end its hidden stages in 0..1, or has none.
    """
    if not level > 0 or not theta_max >= 1:
        raise UsageError(
            f"level is {level}, theta_max {theta_max}; level must be above 0, theta_max at least 1"
        )

    def plan(state: State, cohort: Tensor, round: int, hyper: Tree) -> Plan:
        """Says theta of each class [K, units] for every hidden stage. A party can draw Lambda from the seed, so no bytes count for it."""
        modulation = tree.map(lambda matrix: theta(levels(matrix), level, theta_max), state.server)
        return Plan(party=cohort, model=torch.zeros_like(cohort), shared=modulation)

    return replace(
        fedavg(), name="fednaca", model="twonn", init=init, plan=plan, direction=direction
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
    """server: Lambda of each hidden stage, [2K, *shape of its output]."""
    if task.n_stages < 2:
        raise UsageError(
            f"FedNACA is a rule for hidden stages, and this model declares {task.n_stages} stages in all; choose --model twonn or naca-cnn"
        )
    far = 1e3 * torch.ones(1, *info.shape).to(
        tree.leaves(models)[0]
    )  # drives a stage without bounds far out
    *hidden, logits = task.forward(
        tree.index(models, 0), tree.index(buffers, 0), far, train=False
    ).taps
    n_classes = logits.shape[1]
    slots(n_classes)  # the error at the door
    if not all(bool(((tap >= 0) & (tap <= 1)).all()) for tap in hidden):
        raise UsageError(
            "FedNACA is a rule for hidden stages that end in a sigmoid, and this model's go beyond 0..1; choose --model twonn or naca-cnn"
        )
    return State(
        models,
        buffers,
        server={
            f"stage{i}": modulators(info.seed, i, n_classes, tap) for i, tap in enumerate(hidden)
        },
    )


def modulators(seed: int, stage: int, n_classes: int, tap: Tensor) -> Tensor:
    """Lambda [2K, *tap.shape[1:]] of that stage."""
    drawn = uniform(key(seed, "fednaca", stage), 2 * n_classes * tap[0].numel(), tap.device)
    return drawn.to(tap.dtype).reshape(2 * n_classes, *tap.shape[1:])


def slots(n_classes: int) -> list[int]:
    """a_k for each class: its row of the expectation E has 1/2 at a_k and 1/2 at a_k + 1, of 2K; a_k = floor(2(K-1) sqrt(ln(K/k) / ln K)), k = 1..K.

    ValueError for a single class, and where two classes would have one row (first at K = 234), as NACA's code asserts.
    """
    if n_classes < 2:
        raise UsageError(f"NACA's expectation needs two classes or more, there is {n_classes}")
    a = [
        math.floor(2 * (n_classes - 1) * math.sqrt(math.log(n_classes / k) / math.log(n_classes)))
        for k in range(1, n_classes + 1)
    ]
    if len(set(a)) < n_classes:
        raise UsageError(
            f"with {n_classes} classes NACA's expectation gives two of them the same row; use fewer, 233 always do"
        )
    return a


def levels(matrix: Tensor) -> Tensor:
    """N of each class, [K, ...], from Lambda [2K, ...]."""
    at = torch.tensor(slots(len(matrix) // 2), device=matrix.device)
    return (matrix[at] + matrix[at + 1]) / 2


def theta(n: Tensor, level: float, theta_max: float) -> Tensor:
    """The modulation: 1 at N = 0, theta_max at L/4, 1 at L/2, 0 at L, and theta(2L - N) = -theta(N). Zhang et al. 2023."""
    half = torch.minimum(n, 2 * level - n)
    low = theta_max - (theta_max - 1) * (4 * half - level).square() / level**2
    high = 4 * (half - level).square() / level**2
    height = torch.where(half <= level / 2, low, high)
    return torch.where(n <= level, height, -height)


def direction(task: Task, local: Local, batch: Batch) -> Step:
    """With the stages cut off from each other, the gradient of sum <theta, h> + error is, at each stage, that of its own summand."""

    def f(at: Tree) -> tuple[Tensor, tuple[Tensor, Tree]]:
        out = task.forward(
            at, local.buffers, batch.x, train=True, key=fold(local.key, batch.step), detach=True
        )
        *hidden, logits = out.taps
        target = torch.eye(logits.shape[1], dtype=logits.dtype, device=logits.device)[batch.y]
        errors = (logits.sigmoid() - target).square().mean(1)
        if batch.mask is None:
            loss, counts = errors.mean(), torch.ones_like(errors)
        else:
            loss, counts = (
                (errors * batch.mask).sum() / batch.mask.sum().clamp(min=1),
                batch.mask.to(logits.dtype),
            )
        pull = sum(
            counts @ (local.shared[f"stage{i}"][batch.y] * h).flatten(1).sum(1)
            for i, h in enumerate(hidden)
        )
        return loss + pull, (loss.detach(), out.buffers)

    grads, _, (loss, buffers) = task.differentiate(f, local.params)
    return Step(grads, loss, buffers, local.carry)
