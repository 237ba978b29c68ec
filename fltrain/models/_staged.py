"""A model as a row of stages."""

from typing import Any

from torch import Tensor, nn

from niidpart.errors import UsageError


class Staged(nn.Module):
    """Stages that feed each other; the last one gives the logits, the one before it the features.

    A stage is a parameterised layer or block with its activation, so its output is a review point (FedRL) and a place where a local
    learning rule cuts the gradient (FedNACA).
    """

    def __init__(self, **stages: nn.Module):
        super().__init__()
        for name, stage in stages.items():
            self.add_module(name, stage)

    def forward(
        self, x: Tensor, *, taps: bool = False, upto: int | None = None, detach: bool = False
    ) -> Any:
        """logits [B, K]; with taps=True the output of each stage, as a list. upto: the last stage to run, counted from 0. detach: between stages."""
        out = []
        for i, stage in enumerate(self.children()):
            x = stage(x.detach() if detach and i else x)
            out.append(x)
            if i == upto:
                break
        return out if taps else out[-1]

    def with_head(self, width: int) -> "Staged":
        """This model with MOON's projection head before its last layer; the features are then the projected vector [B, width].

        Li, He, Song, CVPR 2021: d -> d with ReLU, d -> width, then a new last layer width -> K, where d is the width of the features so far.
        The other stages are shared with this model, the new layers draw from torch's global generator. A model that has such a head is
        returned as it is. ValueError: one stage only, features that are not flat, or a head of another width.
        """
        stages = dict(self.named_children())
        if "project2" in stages:
            if stages["project2"].out_features != width:
                raise UsageError(
                    f"the model's projection head is {stages['project2'].out_features} wide, {width} is asked for; take the model without"
                )
            return self
        if len(stages) < 2:
            raise UsageError(
                "a projection head stands between features and the last layer; this model has one stage only, use --model mlp or cnn"
            )
        name, last = stages.popitem()
        layers = list(last) if isinstance(last, nn.Sequential) else [last]
        *before, linear = layers
        if not isinstance(linear, nn.Linear) or not all(
            isinstance(layer, nn.Dropout) for layer in before
        ):
            kinds = ", ".join(type(layer).__name__ for layer in layers)
            raise UsageError(
                f"a projection head needs flat features and one last nn.Linear, but the last stage is {kinds}; move the rest one stage up"
            )
        d, like = linear.in_features, {"device": linear.weight.device, "dtype": linear.weight.dtype}
        stages["project1"] = nn.Sequential(*before, nn.Linear(d, d, **like), nn.ReLU())
        stages["project2"] = nn.Linear(d, width, **like)
        stages[name] = nn.Linear(width, linear.out_features, **like)
        return Staged(**stages).train(self.training)
