"""What each party holds of each class, known to it alone, and the algorithms' own losses by it.

State: models and buffers [1, ...]; parties.counts [P, K] int64, training examples of each class.
Carried: scale and offset [K], what a job's logits are multiplied by and what is added.
"""

from torch import Tensor

from ..directions.class_logits import ClassLogits, LogitsDirection
from ..interface import Hyper, Info, Local, State, Task, Work
from ..tree import Tree
from .fedavg import NONE, fedavg

BASE = fedavg()

# In the place of minus infinity: a class with it has no part in a softmax, and 0 times its loss is
# 0, where padding is left out so.
OUT = -1e30
# A class that is out has no part in smoothed labels either: its loss is beyond measure.
PLAIN_LABELS = {"label_smoothing": 0.0}


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper = NONE) -> State:
    """Let each party know how many examples of each class it has."""
    device = next(iter(models.values())).device
    return State(models, buffers, parties={"counts": info.counts.to(device)})


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload as FedAvg does; the counts stay."""
    upload, _ = BASE.finish(task, local, work)
    return upload, {"counts": local.own["counts"]}


def carry_logits(local: Local, scale: Tensor, offset: Tensor) -> Local:
    """Return the job with what its logits are changed by."""
    return local._replace(carry=local.carry | {"scale": scale, "offset": offset})


def read_logits(local: Local) -> ClassLogits:
    return ClassLogits(local.carry["scale"], local.carry["offset"])


direction = LogitsDirection(read_logits)
