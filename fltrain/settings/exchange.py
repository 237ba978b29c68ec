"""What parties send of their updates. Needs no torch."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from niidpart.registry import Above, AtLeast, AtMost, list_names

_NAMES = ", ".join(list_names("fltrain.compressors"))


@dataclass(frozen=True)
class ExchangeSettings:
    """What parties send of their updates."""

    compress: Annotated[
        str | None,
        f"Parties compress what they upload: {_NAMES} (docs/training.md). Bytes count it so.",
    ] = None
    compress_by: Annotated[
        Literal["model", "tensor"],
        "Compress the update of the whole model at once, or each tensor of it by itself.",
    ] = "model"
    error_feedback: Annotated[
        bool, "What compression left out stays at its party, and is added to its next update."
    ] = True
    topk_share: Annotated[
        float, "Topk: share of the numbers that are sent, at least one.", Above(0), AtMost(1)
    ] = 0.01
    qsgd_levels: Annotated[
        int, "Qsgd: levels between 0 and the length of the update.", AtLeast(1), AtMost(1 << 24)
    ] = 16


class ExchangeSettingValues(TypedDict, total=False):
    """The same as keyword arguments."""

    compress: str | None
    compress_by: Literal["model", "tensor"]
    error_feedback: bool
    topk_share: float
    qsgd_levels: int
