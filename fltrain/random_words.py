"""Philox4x32-10 on tensors: random words by counter, which `fltrain.draws` makes its draws of."""

import torch
from torch import Tensor

MASK = 0xFFFFFFFF
# Philox4x32: the multipliers, and what the key grows by in each round
_M0, _M1, _W0, _W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85

_ROUNDS = 10

WordTensors = tuple[Tensor, Tensor, Tensor, Tensor]


def philox(k0: Tensor | int, k1: Tensor | int, counter: WordTensors) -> WordTensors:
    """Return Philox4x32-10: four 32-bit words, held in int64, for each counter.

    Parameters
    ----------
    k0, k1 : Tensor or int
        Low and high word of the key; tensors for a key of each counter.
    counter : tuple of four Tensors
        int64 of the same shape, each a 32-bit word; or of shapes that broadcast, which keys do too.

    Returns
    -------
    tuple of four Tensors
        int64 of the shape of all together, each a 32-bit word.

    Examples
    --------
    >>> zero = torch.zeros(1, dtype=torch.int64)
    >>> [hex(int(word)) for word in philox(0, 0, (zero, zero, zero, zero))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    if torch.compiler.is_compiling():
        return _philox_compiled(k0, k1, counter)
    c0, c1, c2, c3 = counter
    # Two words of a pair lie in one tensor: a round is six operations, where a GPU starts a kernel
    # for each. `arange` makes constants on the device, where `tensor` would bring them.
    device = c0.device
    factors = torch.arange(_M0, _M1 - 1, _M1 - _M0, device=device)  # M0, M1
    keys = _list_keys(k0, k1, device, axes=max(word.dim() for word in counter))
    multiplied = _pair(c0, c2)
    others = _pair(c1, c3)
    factors = factors.view(2, *[1] * (multiplied.dim() - 1))
    for key in keys:
        # int64 multiplication wraps, so the bits are right; those above a word are masked later
        products = (multiplied * factors).flip(0)
        multiplied = ((products >> 32) ^ others ^ key) & MASK
        others = products
    others = others & MASK
    return multiplied[0], others[0], multiplied[1], others[1]


def _pair(first: Tensor, second: Tensor) -> Tensor:
    """Return two tensors as one [2, ...]."""
    # broadcast_shapes would import sympy, a third of a second.
    return torch.stack(torch.broadcast_tensors(first, second))  # type: ignore[no-untyped-call]


def _list_keys(
    k0: Tensor | int, k1: Tensor | int, device: torch.device, axes: int
) -> tuple[Tensor, ...]:
    """Return the pair of keys of each round, [2, ...], with as many axes behind as a counter has.

    Bits above a word may be set.
    """
    first, second = (
        word if isinstance(word, Tensor) else torch.full((), word, device=device)
        for word in (k0, k1)
    )
    pair = torch.stack([first, second])
    growth = torch.arange(_W0, _W1 + 1, _W1 - _W0, device=device)  # W0, W1
    rounds = torch.arange(_ROUNDS, device=device).unsqueeze(1)
    shape = (_ROUNDS, 2, *[1] * first.dim())
    keys = pair + (rounds * growth).view(shape)
    return keys.view(_ROUNDS, 2, *[1] * (axes - first.dim()), *first.shape).unbind()


def _philox_compiled(k0: Tensor | int, k1: Tensor | int, counter: WordTensors) -> WordTensors:
    """Return the same words, for `torch.compile`, which makes one kernel of all rounds.

    It makes C++, which takes for granted that no product of signed numbers is too large.
    """
    c0, c1, c2, c3 = counter
    for _ in range(_ROUNDS):
        hi0, lo0 = _multiply(c0, _M0)
        hi1, lo1 = _multiply(c2, _M1)
        c0, c2 = hi1 ^ c1 ^ k0, hi0 ^ c3 ^ k1
        c1, c3 = lo1, lo0
        k0 = (k0 + _W0) & MASK
        k1 = (k1 + _W1) & MASK
    return c0, c1, c2, c3


def _multiply(a: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Return high and low 32 bits of a 32-bit by 32-bit product, by products of 48 bits."""
    low = a * (m & 0xFFFF)
    high = a * (m >> 16) + (low >> 16)
    low_word = ((high & 0xFFFF) << 16) | (low & 0xFFFF)
    return high >> 16, low_word
