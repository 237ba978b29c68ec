"""Counter-based draws on the device.

What is drawn for one example depends on key and counter alone, never on what was drawn before.
Words are those of `niidpart.arithmetic.rng.philox`, equal on every device; floats made from them
agree to 1e-6.
"""

import math

import numpy as np
import torch
from torch import Tensor

from niidpart.renamed import forward_old_names

from .counting import ceil_div
from .draw_keys import fold, key, to_int64, torch_seed
from .random_words import MASK, WordTensors, philox

__all__ = [
    "augmentation",
    "fold",
    "key",
    "mark_at_least",
    "normal",
    "order",
    "orders",
    "philox",
    "to_int64",
    "torch_seed",
    "uniform",
]

# what a draw is for: the last word of its counter, or the low byte of it, so that no two purposes
# share a draw
ORDER = 0
AUGMENT = 1


def order(key: int, epoch: int, n: int, device: torch.device) -> Tensor:
    """Return the order of a party's examples in an epoch.

    It is a sort of random words whose low bits are the index, so that no two are equal.

    Parameters
    ----------
    key : int
        Of the party and round.
    epoch : int
    n : int
        How many examples the party has.
    device : torch.device

    Returns
    -------
    Tensor
        [n] int64, each of 0 to n - 1 once.

    Examples
    --------
    >>> ordered = order(key(0, "mine"), epoch=0, n=3, device=torch.device("cpu"))
    >>> sorted(ordered.tolist())
    [0, 1, 2]
    """
    i = torch.arange(n, device=device)
    zero = torch.zeros_like(i)
    counter = (i, zero + epoch, zero, zero + ORDER)
    a, b, _, _ = philox(key & MASK, key >> 32, counter)
    low = (1 << max(n - 1, 1).bit_length()) - 1  # all ones, as long as the largest index
    # 63 random bits, so that the sort of signed integers is that of the words
    random = (a << 31) ^ b
    words = (random & ~low) | i
    return torch.sort(words).values & low


def orders(keys: Tensor, epoch: int | Tensor, sizes: Tensor, width: int) -> Tensor:
    """Return the `order` of each row, by one sort.

    Parameters
    ----------
    keys, sizes : Tensor
        [J] int64.
    epoch : int or Tensor
        One for all, or [J].
    width : int
        The largest size, at least.

    Returns
    -------
    Tensor
        [J, width] int64. Row j holds sizes[j] numbers; what stands behind them is 0.

    Examples
    --------
    >>> orders(torch.tensor([5, 6]), 0, torch.tensor([2, 1]), width=3)[:, 2]
    tensor([0, 0])
    """
    i = torch.arange(width, device=keys.device).unsqueeze(0)
    n, zero = sizes.unsqueeze(1), torch.zeros_like(i)
    epochs = epoch.unsqueeze(1) if isinstance(epoch, Tensor) else zero + epoch
    k0 = (keys & MASK).unsqueeze(1)
    k1 = ((keys >> 32) & MASK).unsqueeze(1)
    counter = (i, epochs, zero, zero + ORDER)
    a, b, _, _ = philox(k0, k1, counter)
    low = (n - 1).clamp(min=1)
    for shift in (1, 2, 4, 8, 16, 32):
        low = low | (low >> shift)  # all ones, as long as the largest index
    random = (a << 31) ^ b
    words = (random & ~low) | i
    is_drawn = i < n
    last = torch.iinfo(torch.int64).max
    words = torch.where(is_drawn, words, last)  # padding comes last
    ordered = torch.sort(words).values & low
    return torch.where(is_drawn, ordered, 0)


def augmentation(key: int, rows: Tensor, party: Tensor, epoch: int | Tensor) -> WordTensors:
    """Return four uniform 32-bit words for each example.

    Parameters
    ----------
    key : int
        Of the run.
    rows, party : Tensor
        [B] int64, the examples and the parties that hold them.
    epoch : int or Tensor
        Of the run: one for all, or [B].

    Returns
    -------
    tuple of four Tensors
        [B] int64, from 0 to 2^32 - 1.

    Examples
    --------
    >>> rows, party = torch.tensor([7, 8]), torch.tensor([0, 1])
    >>> [word.shape for word in augmentation(key(0, "mine"), rows, party, epoch=0)][0]
    torch.Size([2])
    """
    last = ((rows >> 32) << 8) | AUGMENT
    epochs = torch.zeros_like(rows) + epoch
    counter = (rows & MASK, party, epochs, last)
    return philox(key & MASK, key >> 32, counter)


def uniform(
    key: int | Tensor, n: int, device: torch.device, at: tuple[int, int] = (0, 0)
) -> Tensor:
    """Return numbers uniform on [0, 1) in steps of 2^-24.

    Parameters
    ----------
    key : int or Tensor
        Used for nothing else.
    n : int
    device : torch.device
    at : tuple of two ints
        Which of the key's fields, 32 bits each.

    Returns
    -------
    Tensor
        [n] float32.

    Examples
    --------
    >>> uniform(key(0, "mine"), 2, torch.device("cpu")).shape
    torch.Size([2])
    """
    words = _draw_words(key, n, device, at)
    return (words >> 8).float() * 2.0**-24  # 24 bits are exact in float32


def mark_at_least(
    bound: float,
    key: int | Tensor,
    n: int,
    device: torch.device,
    at: tuple[int, int] = (0, 0),
) -> Tensor:
    """Return which of the numbers of `uniform` are at least a bound, without making them.

    Parameters
    ----------
    bound : float
        Rounded to float32, as where `uniform` is compared with it.
    key, n, device, at
        As of `uniform`.

    Returns
    -------
    Tensor
        [n] bool.

    Examples
    --------
    >>> mark_at_least(0.0, key(0, "mine"), 2, torch.device("cpu"))
    tensor([True, True])
    """
    rounded = float(np.float32(bound))
    least = math.ceil(rounded * 2**24) << 8  # of a word of 32 bits
    return _draw_words(key, n, device, at) >= least


def _draw_words(key: int | Tensor, n: int, device: torch.device, at: tuple[int, int]) -> Tensor:
    """Return n words of 32 bits of a key."""
    i = torch.arange(ceil_div(n, 4), device=device)
    zero = torch.zeros(1, dtype=torch.int64, device=device)
    counter = (i, zero + at[0], zero + at[1], zero)
    blocks = philox(key & MASK, (key >> 32) & MASK, counter)
    return torch.stack(blocks, dim=-1).reshape(-1)[:n]


def normal(seeds: Tensor, rows: Tensor, epoch: int | Tensor, width: int) -> Tensor:
    """Return standard normals, one row for each example.

    They are those of `niidpart.arithmetic.rng.normal_field` where the epoch is 0.

    Parameters
    ----------
    seeds : Tensor
        [B, 2] int64, low and high word of the 64-bit seed of each example's party.
    rows : Tensor
        [B] int64, the examples.
    epoch : int or Tensor
        One for all, or [B].
    width : int
        How many numbers an example gets.

    Returns
    -------
    Tensor
        [B, width] float64.

    Examples
    --------
    >>> normal(torch.tensor([[5, 0]]), torch.tensor([7]), epoch=0, width=3).shape
    torch.Size([1, 3])
    """
    n_pairs = (width + 1) // 2
    column = torch.arange(n_pairs, device=rows.device).expand(len(rows), n_pairs)
    low = (rows & MASK).unsqueeze(1).expand_as(column)
    high = (rows >> 32).unsqueeze(1).expand_as(column)
    epochs = epoch.unsqueeze(1) if isinstance(epoch, Tensor) else epoch
    counter = (column, low, high, torch.zeros_like(column) + epochs)
    a, b, c, d = philox(seeds[:, :1], seeds[:, 1:], counter)
    # four words make two numbers of 52 bits
    first = (a << 20) | (b >> 12)
    second = (c << 20) | (d >> 12)
    pairs = torch.stack([first, second], dim=-1)
    bits = pairs.reshape(len(rows), 2 * n_pairs)[:, :width]
    # the middles of 2^52 equal pieces of (0, 1): neither end, whose quantile is infinite
    shares = bits.double() * 2.0**-52 + 2.0**-53
    normals: Tensor = torch.special.ndtri(shares)
    return normals


__getattr__ = forward_old_names(__name__, {"signed": "to_int64"})
