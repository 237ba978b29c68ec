"""Where terms of the loss read a model: behind its stages, or before the layer of its features."""

from typing import Literal, NamedTuple

from torch import nn

from niidpart.errors import UsageError

from ...feature_layer import find_tapped_layer
from ...models import Staged
from ...tasks.stages import SequentialStages, is_plain_sequential
from .plain import INSTEAD

# What a direction reads of a model besides its logits.
Read = Literal["nothing", "features", "stages"]


class TapPlaces(NamedTuple):
    """Children of a model behind which a tap stands, in order, or the layer before which one does.

    before: the layer's name, None for none.
    """

    behind: list[str]
    before: str | None = None


def place_taps(module: nn.Module, read: Read) -> TapPlaces:
    """Return where a model is read; UsageError where it does not say."""
    if read == "nothing":
        return TapPlaces([])
    stages, tapped = list_stage_ends(module), find_tapped_layer(module)
    if read == "features" and tapped is not None:
        return TapPlaces([], before=tapped.name)
    before_logits = stages[-2:-1]
    behind = stages if read == "stages" else before_logits
    if not behind:
        raise UsageError(
            f"engine native finds no {read} that the algorithm reads in a model of class "
            f"{type(module).__name__}; {INSTEAD}"
        )
    return TapPlaces(behind)


def list_stage_ends(module: nn.Module) -> list[str]:
    """Return the names of the children that end a stage; [] where the model declares none."""
    if type(module) is Staged:
        return [name for name, _ in module.named_children()]
    if not is_plain_sequential(module):
        return []
    name_of = {id(child): name for name, child in module.named_children()}
    return [name_of[id(stage[-1])] for stage in SequentialStages(module).stages]
