"""Keys of draws: what is drawn for one purpose, from a seed and names, or from another key."""

import hashlib
import json

from torch import Tensor

from .random_words import MASK

# made once: every job asks for keys
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_MASK64 = 0xFFFFFFFFFFFFFFFF
# the constants of `fold` as int64 holds them: the bits are the same
_WEYL = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX = (0xFF51AFD7ED558CCD - (1 << 64), 0xC4CEB9FE1A85EC53 - (1 << 64))


def key(seed: int, *names: str | int) -> int:
    """Return a 64-bit key for a seed and names (round, party, ...).

    Parameters
    ----------
    seed : int
        Of the run.
    *names : str or int
        What the draws are for; other names give another key.

    Returns
    -------
    int
        From 0 to 2^64 - 1.

    Examples
    --------
    >>> key(0, "mine", 1) == key(0, "mine", 1), key(0, "mine", 1) == key(0, "mine", 2)
    (True, False)
    """
    text = _ENCODER.encode(["fltrain key 1", seed, *names])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def torch_seed(seed: int, *names: str | int) -> int:
    """Return a seed of torch's generator, which takes 63 bits, for what is drawn by modules.

    Parameters
    ----------
    seed : int
        Of the run.
    *names : str or int
        As for `key`.

    Returns
    -------
    int
        From 0 to 2^63 - 1.

    Examples
    --------
    >>> torch_seed(0, "adapt") == key(0, "adapt") >> 1
    True
    """
    return key(seed, *names) >> 1


def fold(key: int | Tensor, number: int | Tensor) -> int | Tensor:
    """Return the key of a number (a step, a layer) within a key: another one for each number.

    It is the finaliser of MurmurHash3. A key is 64 bits: unsigned as a python int, two's complement
    as an int64 tensor, equal bits in both.

    Parameters
    ----------
    key, number : int or Tensor
        int64 tensors may be batched by `torch.func.vmap`.

    Returns
    -------
    int or Tensor
        An int where both are; else an int64 tensor of the shape that they have together.

    Examples
    --------
    >>> to_int64(fold(7, 1)) == int(fold(torch.tensor(7), 1))
    True
    """
    at = (number + 1) * _WEYL
    if isinstance(key, Tensor) or isinstance(at, Tensor):
        return _mix(_as_int64(key) ^ _as_int64(at))
    word = (key ^ at) & _MASK64
    for factor in _MIX:
        word ^= word >> 32
        word = (word * factor) & _MASK64
    return word ^ (word >> 32)


def _mix(word: Tensor | int) -> Tensor | int:
    """Mix the bits of int64 words, as `fold` does those of a python int.

    A shift to the right fills in the sign; the mask takes these bits away.
    """
    for factor in _MIX:
        high = (word >> 32) & MASK
        word = (word ^ high) * factor  # int64 wraps, which is the product modulo 2^64
    high = (word >> 32) & MASK
    return word ^ high


def _as_int64(word: int | Tensor) -> int | Tensor:
    return word if isinstance(word, Tensor) else to_int64(word)


def to_int64(word: int) -> int:
    """Return the number of 64 bits as int64 holds it: a key for a tensor.

    Parameters
    ----------
    word : int
        From 0 to 2^64 - 1.

    Returns
    -------
    int
        From -2^63 to 2^63 - 1, of the same bits.

    Examples
    --------
    >>> to_int64(2**64 - 1)
    -1
    """
    half = 1 << 63
    return ((word + half) & _MASK64) - half
