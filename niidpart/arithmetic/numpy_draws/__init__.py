"""The streams of numpy's and python's generators, whatever numpy and python are installed.

A replay of published code has to draw what that code drew, bit for bit.

- `legacy`: `np.random.RandomState` (`np.random.seed`, `np.random.shuffle`, ...), whose streams
  numpy has frozen.
- `modern`: `np.random.Generator` on PCG64 (`np.random.default_rng`). numpy promises the words of
  the bit generator and nothing made of them, so integers, orders and floats are made of them here,
  as numpy 1.22 to 2.4 does.
- `pythons`: `random.Random`, of the same words, by code of our own.
"""
