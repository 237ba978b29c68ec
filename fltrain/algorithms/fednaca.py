"""Learning by neuromodulation instead of backpropagation.

State: server.stage<i> [2K, units...], Lambda of each hidden stage, never trained. Broadcast:
shared.stage<i> [K, units...], theta of each class.
"""

import math
from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from .. import tree
from ..directions.local_rule import LocalRule, LocalRuleDirection
from ..draws import key, uniform
from ..interface import (
    Above,
    Algorithm,
    AtLeast,
    Hyper,
    Info,
    Local,
    Plan,
    State,
    Task,
    UsageError,
)
from ..tree import Tree
from ._traffic import count_models
from .fedavg import NONE, fedavg

__all__ = ["fednaca"]

FAMILY = "local-rule"

BASE = fedavg()
_ADVICE = "choose --model twonn or naca-cnn"


def fednaca(
    level: Annotated[
        float, "Level of the neuromodulator at which the modulation crosses 0.", Above(0)
    ] = 0.5,
    theta_max: Annotated[float, "Height of the modulation.", AtLeast(1)] = 1.2,
) -> Algorithm:
    """FedNACA: FedAvg of models that learn by NACA's local rule. Zhang et al., Science Advances
    2023; as a baseline Cha, Chang, Information 2025.

    No gradient passes from one stage into the one before. In place of a gradient, a hidden stage
    with output h gets sum_b theta(N) dh/dw, for a sigmoid layer theta s'(a) input^T, whatever the
    loss; w -= lr times that. N [B, units] is the level of a neuromodulator, which the class of an
    example decides: E(y) Lambda, with Lambda [2K, units] ~ U[0, 1] for each hidden stage from the
    run's seed, the same at all parties, never trained. The output stage gets the gradient of the
    squared error of s(logits) to the one-hot class, a mean over B and K (as in both codes; NACA's
    class-incremental one sums it): that is the loss reported.

    The rule is made for stages that end in a sigmoid, --model twonn or naca-cnn; a model whose
    hidden stages do not end in 0..1, or that has none, is refused. Sums over the batch make a
    hidden step about B K / 2 times an output step, so lr is not that of backpropagation: 5e-4 in
    the code of Cha and Chang. `level` is L of `theta`.
    """
    return replace(
        BASE,
        name="fednaca",
        hyper={"level": level, "theta_max": theta_max},
        model="twonn",
        init=init,
        plan=plan,
        direction=LocalRuleDirection(rule),
        traffic=count_models,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Draw Lambda of each hidden stage, [2K, *shape of its output], for the server."""
    if task.n_stages < 2:
        raise UsageError(
            "FedNACA is a rule for hidden stages, and this model declares "
            f"{task.n_stages} stages in all; {_ADVICE}"
        )
    first = tree.index(models, 0), tree.index(buffers, 0)
    # the second drives a stage without bounds far out of 0..1; of letters it would be none
    for size in (0, 1e3):
        x = size * torch.ones(1, *info.shape).to(tree.leaves(models)[0])
        *hidden, logits = task.forward(*first, x, train=False).taps
        if not all(bool(((tap >= 0) & (tap <= 1)).all()) for tap in hidden):
            raise UsageError(
                "FedNACA is a rule for hidden stages that end in a sigmoid, and this model's go "
                f"beyond 0..1; {_ADVICE}"
            )
    n_classes = logits.shape[1]
    choose_slots(n_classes)  # classes that do not fit are refused here, not in the first round
    server = {f"stage{i}": modulators(info.seed, i, n_classes, h) for i, h in enumerate(hidden)}
    return State(models, buffers, server)


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper) -> Plan:
    """Broadcast theta of each class [K, units] for every hidden stage.

    A party can draw Lambda from the seed, so no bytes count for it.
    """

    def modulate(matrix: Tensor) -> Tensor:
        return theta(levels(matrix), hyper["level"], hyper["theta_max"])

    shared = tree.map(modulate, state.server)
    return replace(BASE.plan(state, cohort, round, hyper), shared=shared)


def modulators(seed: int, stage: int, n_classes: int, tap: Tensor) -> Tensor:
    """Return Lambda [2K, *tap.shape[1:]] of that stage."""
    n = 2 * n_classes * tap[0].numel()
    drawn = uniform(key(seed, "fednaca", stage), n, tap.device)
    return drawn.to(tap.dtype).reshape(2 * n_classes, *tap.shape[1:])


def choose_slots(n_classes: int) -> list[int]:
    """Return a_k for each class k = 1..K: its row of the expectation E, of 2K, has 1/2 at a_k and
    at a_k + 1; a_k = floor(2 (K-1) sqrt(ln(K/k) / ln K)).

    UsageError for a single class, and where two classes would have one row (first at K = 234), as
    NACA's code asserts.
    """
    if n_classes < 2:
        raise UsageError(f"NACA's expectation needs two classes or more, there is {n_classes}")

    def slot(k: int) -> int:
        root = math.sqrt(math.log(n_classes / k) / math.log(n_classes))
        return math.floor(2 * (n_classes - 1) * root)

    a = [slot(k) for k in range(1, n_classes + 1)]
    if len(set(a)) < n_classes:
        raise UsageError(
            f"with {n_classes} classes NACA's expectation gives two of them the same row; "
            "use fewer, 233 always do"
        )
    return a


def levels(matrix: Tensor) -> Tensor:
    """Return N of each class, [K, ...], from Lambda [2K, ...]."""
    at = torch.tensor(choose_slots(len(matrix) // 2), device=matrix.device)
    return (matrix[at] + matrix[at + 1]) / 2


def theta(n: Tensor, level: float, theta_max: float) -> Tensor:
    """Return the modulation: 1 at N = 0, theta_max at L/4, 1 at L/2, 0 at L, and
    theta(2L - N) = -theta(N). Zhang et al. 2023.
    """
    half = torch.minimum(n, 2 * level - n)
    low = theta_max - (theta_max - 1) * (4 * half - level).square() / level**2
    high = 4 * (half - level).square() / level**2
    height = torch.where(half <= level / 2, low, high)
    return torch.where(n <= level, height, -height)


def rule(local: Local) -> LocalRule:
    """Weigh the outputs of each hidden stage by theta of the example's class."""
    stages = range(len(local.shared))
    return LocalRule(pulls=[local.shared[f"stage{i}"] for i in stages])
