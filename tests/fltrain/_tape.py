"""What a CUDA graph does, on a CPU: the operations of a call are done again, on the same memory and with the same numbers.

So a step that reads a number of the host's, or memory that moves, is found without a GPU.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Tape(TorchDispatchMode):
    """Records every operation while it is entered; `replay` does them again."""

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        made = function(*args, **kwargs)
        self.operations.append((function, args, kwargs, made))
        return made

    @torch.no_grad()
    def replay(self):
        for function, args, kwargs, made in self.operations:
            again = function(*args, **kwargs)
            old, new = (torch.utils._pytree.tree_leaves(value) for value in (made, again))
            for tensor, value in zip(old, new, strict=True):
                if not isinstance(tensor, torch.Tensor):
                    assert tensor == value  # a number of the host's, which a graph cannot read anew
                elif not is_same_place(tensor, value):
                    tensor.copy_(value)


def is_same_place(a, b):
    """Whether an operation gave memory that was there before: a view, or what it wrote in place."""
    return a.numel() == 0 or (a.data_ptr() == b.data_ptr() and a.stride() == b.stride())


class TapeCapture:
    """In the place of `CudaCapture`: captures on tapes, each call of which is counted."""

    def __init__(self):
        self.captured = 0
        self.replayed = 0

    def call(self, function):
        function()

    def __call__(self, function):
        self.captured += 1
        tape = Tape()
        with tape:
            function()
        is_done = iter([True])  # once, since a tape is recorded by doing it, other than a graph

        def replay():
            if not next(is_done, False):
                self.replayed += 1
                tape.replay()

        return replay
