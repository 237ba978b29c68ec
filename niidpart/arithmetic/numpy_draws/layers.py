"""Tables of the ziggurat method (Marsaglia and Tsang, J. Stat. Software 5(8), 2000), 256 layers.

Layers of equal area below exp(-x) and exp(-x*x/2). They follow from where the lowest layer ends.
numpy carries them as literals. Those of the exponential are the very same; those of the normal
were once computed with less digits, and `_NUMPYS_DEVIATIONS` says how far off its widths are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cache
from math import ulp

_N_LAYERS = 256
_DIGITS = 45

# By how many units in the last place numpy's widths of the normal are above the exact ones.
_NUMPYS_DEVIATIONS = """
    -9 -60 -18 -16 -14 -15 -16 -13 -13 -7 -7 -6 -5 -5 -5 -5 -5 -6 -5 -6 -7 -7 -6 -7 -7 -6 -6
    -5 -6 -6 -7 -5 -6 -6 -6 -6 -6 -7 -5 -5 -4 -3 -4 -5 -3 -4 -4 -4 -4 -4 -4 -5 -2 -3 -3 -4 -4
    -3 -4 -4 -3 -3 -2 -2 -3 -3 -4 -3 -4 -3 -3 -3 -2 -2 -1 -2 -2 -3 -3 -3 -2 -2 -3 -3 -3 -2 -2
    -2 -2 -1 -2 -1 -1 -1 -1 -1 -2 -1 -1 -1 -1 -1 -2 -1 -1 -2 -2 -2 -2 -2 -2 -2 -2 -2 -1 -1 -1
    -1 -1 -1 -1 -1 0 0 -1 -1 -1 -2 -1 -1 -1 -1 -2 -2 -2 -1 -1 -2 -2 -2 -3 -3 -4 -3 -3 -3 -2 -2
    -1 -2 -1 -1 -1 -1 -1 -1 0 0 1 0 0 -1 0 0 0 0 0 0 0 0 0 1 2 2 3 3 3 2 2 1 0 0 0 0 0 0 0 0 0
    0 0 0 0 0 0 -1 -1 -1 -1 -1 -2 -1 -2 -2 -2 -2 -2 -2 -1 -1 -1 -1 0 0 -1 -1 0 0 0 0 -1 0 0 0
    0 0 0 0 0 0 0 -1 0 -1 -1 -1 -1 -1 -1 -1 0 0 1 0 1 1 1 1 1 1 0 0 1 1 1 0
"""

DecimalCurve = Callable[[Decimal], Decimal]


@dataclass(frozen=True)
class Layers:
    """The layers below a curve.

    Parameters
    ----------
    end : float
        Where the lowest layer ends and the tail begins.
    widths : list of float
        Width of a layer for one unit of the random integer.
    inner : list of int
        Integers below this are below the curve for sure.
    heights : list of float
        The curve at the layer's edge.
    """

    end: float
    widths: list[float]
    inner: list[int]
    heights: list[float]


@cache
def make_exponential_layers() -> Layers:
    """Return the layers below exp(-x), for integers of 53 bits.

    Examples
    --------
    >>> round(make_exponential_layers().end, 6)
    7.697117
    """
    with localcontext(prec=_DIGITS):
        end = Decimal("7.6971174701310497140446280480152154991139686400553")
        tail = (-end).exp()
        return _stack(end, tail, lambda x: (-x).exp(), lambda y: -y.ln(), bits=53)


@cache
def make_normal_layers() -> Layers:
    """Return the layers below exp(-x*x/2), for integers of 52 bits.

    Examples
    --------
    >>> round(make_normal_layers().end, 6)
    3.654153
    """
    with localcontext(prec=_DIGITS):
        end = Decimal("3.6541528853610087716454297203995157629748545997464")
        tail = (-end * end / 2).exp() / _expand_fraction(end)
        exact = _stack(
            end,
            tail,
            lambda x: (-x * x / 2).exp(),
            lambda y: (-2 * y.ln()).sqrt(),
            bits=52,
        )
    deviations = map(int, _NUMPYS_DEVIATIONS.split())
    pairs = zip(exact.widths, deviations, strict=True)
    return replace(exact, widths=[width + n * ulp(width) for width, n in pairs])


def _expand_fraction(x: Decimal) -> Decimal:
    """Return exp(-x*x/2) over the area to the right of x: Laplace's continued fraction."""
    rest = Decimal(0)
    for k in range(600, 0, -1):
        rest = k / (x + rest)
    return x + rest


def _stack(
    end: Decimal, tail: Decimal, curve: DecimalCurve, invert: DecimalCurve, *, bits: int
) -> Layers:
    """Return the layers below a curve whose tail beyond `end` has the area `tail`."""
    area = end * curve(end) + tail
    edges = [Decimal(0)] * (_N_LAYERS + 1)
    edges[_N_LAYERS] = area / curve(end)  # as wide as a layer of that height would be
    edges[_N_LAYERS - 1] = end
    for i in range(_N_LAYERS - 2, 0, -1):
        outer = edges[i + 1]
        edges[i] = invert(area / outer + curve(outer))
    whole = Decimal(1 << bits)
    ratios = [edges[i - 1] / edges[i] for i in range(1, _N_LAYERS)]
    lowest = edges[_N_LAYERS - 1] / edges[_N_LAYERS]
    return Layers(
        end=float(end),
        widths=[float(edges[i] / whole) for i in (_N_LAYERS, *range(1, _N_LAYERS))],
        inner=[round(ratio * whole) for ratio in (lowest, *ratios)],
        heights=[float(curve(edge)) for edge in edges[:_N_LAYERS]],
    )
