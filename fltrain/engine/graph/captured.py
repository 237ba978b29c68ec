"""A function that is captured as a CUDA graph and replayed, or called where there is no CUDA."""

from collections.abc import Callable

import torch

from niidpart.errors import UsageError

# Calls before a function is captured: the first ones choose algorithms and make workspaces.
WARM_UPS = 3

Recordable = Callable[[], None]
# What makes of a function one that does the same again.
Capture = Callable[[Recordable], Recordable]


class CudaCapture:
    """Captures functions as graphs, which share a stream and the memory of what is between kernels.

    They may share it since each is replayed to its end before another one is, and what outlives a
    replay lies elsewhere. This class has run nowhere: no GPU was at hand.
    """

    def __init__(self, device: torch.device, name: str):
        """name: of the algorithm, for the error."""
        self._name = name
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch's
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Recordable) -> Recordable:
        """Return the graph's replay; UsageError where the function cannot be captured."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                function()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            first = str(error).strip().splitlines()[0]
            raise UsageError(
                f"a step of {self._name} cannot be captured as a CUDA graph: {first}; "
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


def make_capture(device: torch.device, name: str) -> CudaCapture | None:
    """Return what captures on the device; None where functions are called."""
    return CudaCapture(device, name) if device.type == "cuda" else None


class Captured:
    """A function that only reads and writes memory that stays: replayed after some calls.

    The calls before that do their work, as any call.
    """

    def __init__(self, function: Recordable, capture: CudaCapture | None):
        self._function = function
        self._capture = capture
        self._calls = 0
        self._replay: Recordable | None = None

    def __call__(self) -> None:
        if self._replay is not None:
            self._replay()
        elif self._capture is None:
            self._function()
        elif self._calls < WARM_UPS:
            self._calls += 1
            self._capture.call(self._function)
        else:
            # nothing is done while it is captured
            self._replay = self._capture(self._function)
            self._replay()
