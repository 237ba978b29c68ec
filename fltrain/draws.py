"""Counter-based draws on the device: what is drawn for one example depends on key and counter alone, never on what was drawn before.

Words are those of `niidpart.rng.philox`, equal on every device; floats made from them agree to 1e-6.
"""

import hashlib
import json

import torch
from torch import Tensor

_MASK, _MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_M0, _M1, _W0, _W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
_WEYL, *_MIX = (
    c - (1 << 64) for c in (0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
)  # as int64 holds them: the bits are the same
ORDER = 0  # what a draw of a job's key is for: the last word of the counter
AUGMENT = 1  # of a run's key: the low byte of the last word


def key(seed: int, *names: str | int) -> int:
    """A 64-bit key for `seed` and `names` (round, party, ...)."""
    text = json.dumps(["fltrain key 1", seed, *names], separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def fold(key: int | Tensor, number: int | Tensor) -> int | Tensor:
    """The key of `number` (a step, a layer) within a key: another one for each number. The finaliser of MurmurHash3.

    A key is 64 bits: unsigned as a python int, two's complement as an int64 tensor, equal bits in both; tensors may be batched by `torch.func.vmap`.
    """
    at = (number + 1) * _WEYL
    if isinstance(key, Tensor) or isinstance(at, Tensor):
        x = (key if isinstance(key, Tensor) else signed(key)) ^ (
            at if isinstance(at, Tensor) else signed(at)
        )
        for m in _MIX:
            x = (x ^ (x >> 32 & _MASK)) * m
        return x ^ (x >> 32 & _MASK)
    word = (key ^ at) & _MASK64
    for m in _MIX:
        word = (word ^ word >> 32) * m & _MASK64
    return word ^ word >> 32


def signed(word: int) -> int:
    """The number of 64 bits as int64 holds it: a key for a tensor."""
    return (word + (1 << 63) & _MASK64) - (1 << 63)


def _mulhi_lo(a: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """High and low 32 bits of a 32-bit by 32-bit product. int64 multiplication wraps, so the bits are right."""
    if torch.compiler.is_compiling():  # where it becomes C++, which takes for granted that no product of signed numbers is too large
        low = a * (m & 0xFFFF)
        p = a * (m >> 16) + (low >> 16)
        return p >> 16, (p & 0xFFFF) << 16 | low & 0xFFFF
    p = a * m
    return (p >> 32) & _MASK, p & _MASK


def philox(
    k0: Tensor | int, k1: Tensor | int, counter: tuple[Tensor, Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Philox4x32-10: four 32-bit words, held in int64, for each counter (and key, where keys are tensors)."""
    c0, c1, c2, c3 = counter
    for _ in range(10):
        hi0, lo0 = _mulhi_lo(c0, _M0)
        hi1, lo1 = _mulhi_lo(c2, _M1)
        c0, c1, c2, c3 = hi1 ^ c1 ^ k0, lo1, hi0 ^ c3 ^ k1, lo0
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0, c1, c2, c3


def order(key: int, epoch: int, n: int, device: torch.device) -> Tensor:
    """[n] int64: the order of a party's examples in an epoch, by a sort of words whose low bits are the index (so no two are equal)."""
    i = torch.arange(n, device=device)
    zero = torch.zeros_like(i)
    a, b, _, _ = philox(key & _MASK, key >> 32, (i, zero + epoch, zero, zero + ORDER))
    low = max(n - 1, 1).bit_length()
    words = ((a << 31) ^ b) & ~(
        (1 << low) - 1
    ) | i  # 63 random bits, so that the sort of signed integers is that of the words
    return torch.sort(words).values & ((1 << low) - 1)


def orders(keys: Tensor, epoch: int | Tensor, sizes: Tensor, width: int) -> Tensor:
    """[J, width] int64: `order` of each row, by one sort. keys, sizes: [J] int64; epoch: one for all or [J]; width: the largest size, at least.

    Row j holds sizes[j] numbers; what stands behind them is 0.
    """
    i = torch.arange(width, device=keys.device).unsqueeze(0)
    n, zero = sizes.unsqueeze(1), torch.zeros_like(i)
    again = epoch.unsqueeze(1) if isinstance(epoch, Tensor) else zero + epoch
    a, b, _, _ = philox(
        (keys & _MASK).unsqueeze(1),
        (keys >> 32 & _MASK).unsqueeze(1),
        (i, again, zero, zero + ORDER),
    )
    low = (n - 1).clamp(min=1)
    for shift in (1, 2, 4, 8, 16, 32):
        low = low | low >> shift  # all ones, as long as the largest index
    words = torch.where(
        i < n, ((a << 31) ^ b) & ~low | i, torch.iinfo(torch.int64).max
    )  # padding comes last
    return torch.where(i < n, torch.sort(words).values & low, 0)


def augmentation(
    key: int, rows: Tensor, party: Tensor, epoch: int | Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four uniform 32-bit words [B], held in int64, for each example `rows` [B] of parties `party` [B] in an epoch of the run, or one each [B]."""
    return philox(
        key & _MASK,
        key >> 32,
        (rows & _MASK, party, torch.zeros_like(rows) + epoch, (rows >> 32) << 8 | AUGMENT),
    )


def uniform(
    key: int | Tensor, n: int, device: torch.device, at: tuple[int, int] = (0, 0)
) -> Tensor:
    """[n] float32, uniform on [0, 1) in steps of 2^-24: the draws of a key that is used for nothing else. at: which of its fields, 32 bits each."""
    i = torch.arange(-(-n // 4), device=device)
    zero = torch.zeros_like(i)
    words = torch.stack(
        philox(key & _MASK, key >> 32 & _MASK, (i, zero + at[0], zero + at[1], zero)), dim=-1
    ).reshape(-1)[:n]
    return (words >> 8).float() * 2.0**-24


def normal(seeds: Tensor, rows: Tensor, epoch: int | Tensor, width: int) -> Tensor:
    """[B, width] float64 standard normals, of example `rows` [B] and the party with the 64-bit seed `seeds` [B, 2] (low, high word).

    epoch: one for all, or [B], one for each. The same as `niidpart.rng.normal_field` where it is 0.
    """
    pairs = (width + 1) // 2
    column = torch.arange(pairs, device=rows.device).expand(len(rows), pairs)
    low, high = (
        (rows & _MASK).unsqueeze(1).expand_as(column),
        (rows >> 32).unsqueeze(1).expand_as(column),
    )
    again = epoch.unsqueeze(1) if isinstance(epoch, Tensor) else epoch
    words = philox(
        seeds[:, :1], seeds[:, 1:], (column, low, high, torch.zeros_like(column) + again)
    )
    a, b, c, d = words
    bits = torch.stack([a << 20 | b >> 12, c << 20 | d >> 12], dim=-1).reshape(
        len(rows), 2 * pairs
    )[:, :width]
    values: Tensor = torch.special.ndtri(bits.double() * 2.0**-52 + 2.0**-53)
    return values
