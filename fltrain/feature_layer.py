"""The layer of a plain module whose input are its features: found or named, and listened to.

A model of stages (`fltrain.models.Staged`) has features without it.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

_SHOWN = 12  # layers that an error lists
_ATTRIBUTE = "feature_tap"  # of the layer that has one
_ADVICE = "name the layer whose input are the features: --features-layer NAME (features_layer=)"


class FeatureTap:
    """A forward pre-hook that keeps the inputs of its layer while somebody listens.

    A hook, so that names, types and weights of the module stay, and copies of it have taps of their
    own. At all other times it does nothing.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.inputs: list[Tensor] = []

    def __call__(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.is_open:
            self.inputs.append(args[0] if args else next(iter(kwargs.values())))

    @contextmanager
    def listen(self) -> Iterator[list[Tensor]]:
        """Give the inputs of the layer in the passes within."""
        self.inputs = []
        self.is_open = True
        try:
            yield self.inputs
        finally:
            self.is_open = False
            self.inputs = []


class TappedLayer(NamedTuple):
    """The layer whose input are the features: its name in the module, and what listens to it."""

    name: str
    tap: FeatureTap


class FoundFeatures(NamedTuple):
    """What was found out about a module.

    module: a copy with a tap at the layer; the module itself where there is none. fault: why there
    is none, and what to do; "" where there is one.
    """

    module: nn.Module
    fault: str


class _Call(NamedTuple):
    """A call of a layer in a pass. outputs: how many numbers it gave for an example."""

    name: str
    outputs: tuple[int, ...]


def find_tapped_layer(module: nn.Module) -> TappedLayer | None:
    """Return the layer that has a tap, or None."""
    for name, layer in module.named_modules():
        tap = vars(layer).get(_ATTRIBUTE)
        if isinstance(tap, FeatureTap):
            return TappedLayer(name, tap)
    return None


def put_tap(layer: nn.Module) -> None:
    """Let the input of this layer be the features, in place."""
    tap = FeatureTap()
    layer.register_forward_pre_hook(tap, with_kwargs=True)
    vars(layer)[_ATTRIBUTE] = tap


def tap_named_layer(module: nn.Module, name: str, x: Tensor) -> nn.Module:
    """Return a copy whose features are the input of the layer of that name.

    x: examples [B, ...]. UsageError where there is no such layer, or no single call of it.
    """
    names = [known for known, _ in module.named_modules() if known]
    if name not in names:
        hint = did_you_mean(name, names) if names else "it has none"
        raise UsageError(f"the model has no layer {name!r}; {hint}. {_list_layers(module)}")
    calls = [call for call in _list_calls(module, x) if call.name == name]
    if len(calls) != 1:
        how_often = f"calls it {len(calls)} times" if calls else "does not call it"
        raise UsageError(
            f"the input of layer {name!r} cannot be the features: a pass {how_often}, one call is "
            f"needed. {_list_layers(module)}"
        )
    return _copy_with_tap(module, name)


def find_features(module: nn.Module, x: Tensor) -> FoundFeatures:
    """Return a copy whose features are the input of the last linear layer that a pass calls.

    x: examples [B, ...]. There are none where that layer is called twice, gives something else than
    the logits, or holds all that is trained. What fails in a pass is not told here: training will.
    """
    try:
        calls = _list_calls(module, x)
    except RuntimeError:
        return FoundFeatures(module, f"no pass through the model succeeds; {_ADVICE}")
    fault = _why_not_features(module, calls)
    if fault:
        return FoundFeatures(module, f"{fault}; {_ADVICE}. {_list_layers(module)}")
    return FoundFeatures(_copy_with_tap(module, _list_linear(module, calls)[-1].name), "")


def _why_not_features(module: nn.Module, calls: list[_Call]) -> str:
    """Return why the input of the last linear layer cannot be the features; "" where it can."""
    linear = _list_linear(module, calls)
    if not linear:
        return f"a pass through this {type(module).__name__} calls no nn.Linear"
    last = linear[-1]
    if [call.name for call in linear].count(last.name) > 1:
        return f"a pass calls the last nn.Linear, {last.name!r}, more than once"
    logits = calls[-1].outputs  # the module itself ends last
    if last.outputs != logits:
        return (
            f"the last nn.Linear that a pass calls, {last.name!r}, gives {last.outputs} for an "
            f"example, not {logits} as the model does"
        )
    of_layer = list(module.get_submodule(last.name).parameters())
    if len(of_layer) == len(list(module.parameters())):
        return f"nothing is trained before the last nn.Linear, {last.name!r}"
    return ""


def _list_linear(module: nn.Module, calls: list[_Call]) -> list[_Call]:
    return [call for call in calls if isinstance(module.get_submodule(call.name), nn.Linear)]


def _list_calls(module: nn.Module, x: Tensor) -> list[_Call]:
    """Return the layers that a pass calls, in the order in which they end."""
    calls: list[_Call] = []
    watched = copy.deepcopy(module).eval()
    for name, layer in watched.named_modules():

        def note(_: nn.Module, args: Any, out: Any, name: str = name) -> None:
            outputs = tuple(out.shape[1:]) if isinstance(out, Tensor) else ()
            calls.append(_Call(name, outputs))

        layer.register_forward_hook(note)
    first = next(watched.parameters(), None)
    x = x if first is None else x.to(first.device)
    # dropout that is drawn in eval mode too must not move the generator on
    devices = [x.device] if x.device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(devices):
        watched(x)
    return calls


def _copy_with_tap(module: nn.Module, name: str) -> nn.Module:
    tapped = copy.deepcopy(module)
    for layer in tapped.modules():
        vars(layer).pop(_ATTRIBUTE, None)  # of another run; its hook has nobody who listens
    put_tap(tapped.get_submodule(name))
    return tapped


def _list_layers(module: nn.Module) -> str:
    """Return the layers that hold no others, in words: the last ones, where there are many."""
    layers = [
        f"{name} ({type(layer).__name__})"
        for name, layer in module.named_modules()
        if name and not list(layer.children())
    ]
    if not layers:
        return "It has no layers by name: build it of modules, such as nn.Linear"
    more = f", and {len(layers) - _SHOWN} before them" if len(layers) > _SHOWN else ""
    return f"Its layers: {', '.join(layers[-_SHOWN:])}{more}"
