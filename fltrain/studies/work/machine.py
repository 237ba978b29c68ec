"""What decides the last bits of a result, as far as a machine does."""

import torch

from niidpart.splits.recipe import JSON


def describe_place(device: str) -> JSON:
    """Return what has to be equal for a run to go on byte for byte. device: cpu or cuda.

    Engine and threads are not in it: a run that goes on has those that it was started with.
    """
    is_cuda = device == "cuda"
    return {
        "torch": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name() if is_cuda else "cpu",
        "cuda": torch.version.cuda if is_cuda else None,
    }


def list_changes(there: JSON, here: JSON) -> JSON:
    """Return what differs between two places: by name what it was, and what it is here."""
    return {
        name: [there.get(name), value] for name, value in here.items() if there.get(name) != value
    }
