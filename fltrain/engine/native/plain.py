"""What of a module its layers do not say, and compiled code would leave out."""

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from niidpart.errors import UsageError

from ...feature_layer import FeatureTap

INSTEAD = "use --engine processes or looped"
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def require_no_global_hooks() -> None:
    """Raise a UsageError for hooks that torch would call for every module of this process."""
    found = [kind for kind in _HOOKS if getattr(torch_module, f"_global{kind}")]
    if found:
        raise UsageError(
            "engine native: torch has hooks of all modules (torch.nn.modules.module."
            f"register_module_*), which it would not call; remove them, or {INSTEAD}"
        )


def require_plain_module(name: str, module: nn.Module) -> None:
    """Raise a UsageError for a module that does more than its class says."""
    own = [key for key in vars(module) if callable(getattr(type(module), key, None))]
    if own:
        raise UsageError(
            f"engine native: {describe_layer(name)} has a {own[0]} of its own, beside that of its "
            f"class {type(module).__name__}, which it would not call; {INSTEAD}"
        )
    hooks = [hook for kind in _HOOKS for hook in getattr(module, kind).values()]
    # a tap changes nothing, and what it would hear is read by the compiled code itself
    if not all(isinstance(hook, FeatureTap) for hook in hooks):
        raise UsageError(
            f"engine native: {describe_layer(name)} has hooks, which it would not call; {INSTEAD}"
        )


def require_plain_tensors(
    parameters: dict[str, nn.Parameter], statistics: dict[str, torch.Tensor]
) -> None:
    """Raise a UsageError for tensors other than those of float32, and for frozen parameters."""
    wrong = []
    for kind, tensors in (("parameter", parameters), ("buffer", statistics)):
        for name, tensor in tensors.items():
            if tensor.dtype != torch.float32:
                dtype = str(tensor.dtype).removeprefix("torch.")
                wrong.append(f"{kind} {name} is {dtype}, float32 is needed")
    wrong += [
        f"parameter {name} is frozen" for name, p in parameters.items() if not p.requires_grad
    ]
    if wrong:
        raise UsageError(
            "engine native trains parameters of float32 alone, without frozen ones: "
            f"{wrong[0]}; {INSTEAD}"
        )


def describe_layer(name: str) -> str:
    """Return the words for a layer of that name, "" for the whole model."""
    return f"layer {name}" if name else "the model"
