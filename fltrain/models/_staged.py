"""A model as a row of stages."""

from typing import Any

from torch import Tensor, nn


class Staged(nn.Module):
    """Stages that feed each other; the last one gives the logits, the one before it the features.

    A stage is a parameterised layer or block with its activation, so its output is a review point (FedRL) and a place where a local
    learning rule cuts the gradient (FedNACA).
    """

    def __init__(self, **stages: nn.Module):
        super().__init__()
        for name, stage in stages.items():
            self.add_module(name, stage)

    def forward(self, x: Tensor, *, taps: bool = False, upto: int | None = None, detach: bool = False) -> Any:
        """logits [B, K]; with taps=True the output of each stage, as a list. upto: the last stage to run, counted from 0. detach: between stages."""
        out = []
        for i, stage in enumerate(self.children()):
            x = stage(x.detach() if detach and i else x)
            out.append(x)
            if i == upto:
                break
        return out if taps else out[-1]
