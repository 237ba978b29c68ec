"""What is made of the model that is asked for. Needs no torch."""

from dataclasses import dataclass
from typing import Annotated, TypedDict


@dataclass(frozen=True)
class ModelSettings:
    """What is made of the model that is asked for."""

    features_layer: Annotated[
        str | None,
        "The layer whose input are the features (MOON), by its name in the model, such as fc. If "
        "not given, the last stage of a model of stages, else the last linear layer.",
    ] = None
    models_by: Annotated[
        str | None,
        "The column of the split by whose values parties have one of several models (--model "
        "cnn+mlp): the values take turns, in ascending order. If not given, the parties do.",
    ] = None


class ModelSettingValues(TypedDict, total=False):
    """The same as keyword arguments."""

    features_layer: str | None
    models_by: str | None
