"""What parties make of an update to send fewer bits: one file each; the folder is the registry.

A file ends in its record, `ENTRY = Compressor(compress=..., count_bits=...)`. It sees one block of
numbers, the whole update or one tensor of it, and gives what arrives of it at the server. Its
keyword-only parameters are settings (`fltrain/settings/exchange.py` declares them). `compress` may
run for many jobs at once, by `torch.func.vmap`: no branch on a tensor, no number of a size that the
data decides.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from niidpart.registry import RecordRegistry

from ..settings.exchange import ExchangeSettings
from ._draw import UpdateDraw

__all__ = ["COMPRESSORS", "Compressor", "UpdateDraw", "find_compressor"]


@dataclass(frozen=True)
class Compressor:
    """A way to send an update in fewer bits.

    Parameters
    ----------
    compress : callable
        (update [n], draw, *, its settings) -> [n], what arrives of it, in the type of the update.
    count_bits : callable
        (n, width, *, its settings) -> int, the bits that n numbers take on their way, of which one
        that is sent as it is takes `width`.
    """

    compress: Callable[..., Tensor]
    count_bits: Callable[..., int]

    @functools.cached_property
    def uses(self) -> tuple[str, ...]:
        """The names of the settings that it uses."""
        names = [self._list_options(self.compress), self._list_options(self.count_bits)]
        return tuple(dict.fromkeys(name for some in names for name in some))

    def compress_by(self, settings: ExchangeSettings, update: Tensor, draw: UpdateDraw) -> Tensor:
        """Return what arrives of an update [n]."""
        return self.compress(update, draw, **self._take(self.compress, settings))

    def count_bits_by(self, settings: ExchangeSettings, n: int, width: int) -> int:
        """Return the bits of n numbers."""
        return self.count_bits(n, width, **self._take(self.count_bits, settings))

    def _take(self, function: Callable[..., Any], settings: ExchangeSettings) -> dict[str, Any]:
        return {name: getattr(settings, name) for name in self._list_options(function)}

    @staticmethod
    def _list_options(function: Callable[..., Any]) -> list[str]:
        return inspect.getfullargspec(function).kwonlyargs


COMPRESSORS = RecordRegistry("fltrain.compressors", "compressor", Compressor, "compress")


@functools.cache
def find_compressor(name: str) -> Compressor:
    """Return the record of a compressor. It is looked up once: every job asks for it."""
    return COMPRESSORS.record(name)
