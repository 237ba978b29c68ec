"""What is another here than where a run was started: its last bits may then be others."""

import torch

from ..engine.execution import OF_BUILD, Execution
from ..environment import describe
from .folder import RunFolder


def describe_changes(folder: RunFolder, execution: Execution) -> str:
    """Return the changes of machine, versions and compiled code since a run was started.

    As `torch 2.9.0 -> 2.13.0, instructions avx2 -> avx512`; "" where there is none.
    """
    here = describe(torch.device(execution.device), execution.threads)
    there = dict(folder.environment)
    chosen = execution.describe()
    began = folder.config.get("execution", {})
    for name in OF_BUILD:
        # earlier versions did not say which code it was
        if name in chosen and name in began:
            here[name] = chosen[name]
            there[name] = began[name]
    changed = [name for name, value in here.items() if there.get(name) != value]
    return ", ".join(f"{name} {there.get(name)} -> {here[name]}" for name in changed)
