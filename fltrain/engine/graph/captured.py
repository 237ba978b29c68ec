"""A function that is captured as a CUDA graph and replayed, or called where there is no CUDA."""

import functools
from collections.abc import Callable

import torch

from niidpart.errors import UsageError

from ..stacked.stackable import first_line

# Calls before a function is captured: the first ones choose algorithms and make workspaces.
WARM_UPS = 3

Recordable = Callable[[], None]
# What makes of a function one that does the same again.
Capture = Callable[[Recordable], Recordable]


class CudaCapture:
    """Captures functions as graphs, which share the memory of what is between kernels.

    They may share it since each is replayed to its end before another one is, and what outlives a
    replay lies elsewhere. It is free when the last of them is gone, and then torch takes no other
    graph into it: graphs that do not end together need a capture of their own. This class has run
    nowhere: no GPU was at hand.
    """

    def __init__(self, device: torch.device, name: str):
        """name: of the algorithm, for the error."""
        self._name = name
        self._stream = find_stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Recordable) -> Recordable:
        """Return the graph's replay; UsageError where the function cannot be captured."""
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                function()
        except RuntimeError as error:
            # where a capture cannot be ended, torch stays on its stream
            torch.cuda.set_stream(current)
            first = _find_first_error(error)
            if isinstance(first, torch.OutOfMemoryError):
                raise first from None
            said = first_line(first)
            raise UsageError(
                f"a step of {self._name} cannot be captured as a CUDA graph: {said}; "
                "use --engine stacked"
            ) from error
        return graph.replay

    def call(self, function: Recordable) -> None:
        """Call a function on the stream on which functions are captured."""
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            function()
        current.wait_stream(self._stream)


@functools.cache
def find_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream on which all is captured: cuBLAS keeps memory for each that it has seen."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch's


def _find_first_error(error: BaseException) -> BaseException:
    """Return the error that came first: torch raises another where it ends what has failed."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def make_capture(device: torch.device, name: str) -> CudaCapture | None:
    """Return what captures on the device; None where functions are called."""
    return CudaCapture(device, name) if device.type == "cuda" else None


class Captured:
    """A function that only reads and writes memory that stays: replayed after some calls.

    The calls before that do their work, as any call. It is given with each call and not kept: the
    function's owner keeps this, and memory of a device is not to wait for Python's collector.
    """

    def __init__(self, capture: CudaCapture | None):
        self._capture = capture
        self._calls = 0
        self._replay: Recordable | None = None

    def __call__(self, function: Recordable) -> None:
        if self._replay is not None:
            self._replay()
        elif self._capture is None:
            function()
        elif self._calls < WARM_UPS:
            self._calls += 1
            self._capture.call(function)
        else:
            # nothing is done while it is captured
            self._replay = self._capture(function)
            self._replay()
