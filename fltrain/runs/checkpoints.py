"""States on disk: two files a round, in which nothing is pickled."""

import hashlib
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from niidpart.errors import FileFault
from niidpart.files import write_whole

from .. import tree
from ..interface import State
from .files import read_json, write_json

# What reading a checkpoint that is not whole can raise.
DAMAGE = (OSError, ValueError, KeyError, TypeError, SafetensorError)


def name_checkpoint(round: int) -> str:
    """Return the name of a round's checkpoint, without the ending; names sort by round."""
    return f"round-{round:06d}"


def write_checkpoint(folder: Path, state: State, round: int) -> None:
    """Write the state after a round.

    It counts once its JSON is there, which has the digest of its tensors.
    """
    parts = state.parts
    flat = tree.flatten(parts)
    data = save(_separate(flat))
    base = folder / name_checkpoint(round)
    # The tensors first: checkpoints are found by their JSON, so a run that is killed between the
    # two files has left none, rather than half of one.
    write_whole(base.with_suffix(".safetensors"), data)
    head = {
        "round": round,
        "sha256": hashlib.sha256(data).hexdigest(),
        "names": list(flat),
        "empty": tree.empties(parts),
    }
    write_json(base.with_suffix(".json"), head)


def read_checkpoint(head_file: Path) -> tuple[int, State]:
    """Return (round, state) of the checkpoint of a JSON; one of `DAMAGE` if it is not whole."""
    head = read_json(head_file)
    tensor_file = head_file.with_suffix(".safetensors")
    data = tensor_file.read_bytes()
    if hashlib.sha256(data).hexdigest() != head["sha256"]:
        raise FileFault(f"{tensor_file.name} is not what was written (its sha256 differs)")
    if head_file.stem != name_checkpoint(head["round"]):
        raise FileFault(f"it says round {head['round']}")
    tensors = load(data)
    # They come in no order. That of the names is part of the state: sums over leaves follow it.
    in_order = {name: tensors[name] for name in head["names"]}
    parts = tree.unflatten(in_order, head["empty"])
    return head["round"], State(**parts)


def _separate(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors on the host, each with memory of its own.

    safetensors refuses tensors that share theirs.
    """
    out: dict[str, Tensor] = {}
    seen = set()  # addresses of memory that a tensor before has
    for name, tensor in tensors.items():
        host = tensor.detach().cpu().contiguous()
        memory = host.untyped_storage().data_ptr()
        out[name] = host.clone() if memory in seen else host
        seen.add(memory)
    return out
