"""The streams of numpy's and python's generators, drawn again by code of our own.

A replay of published code has to draw what that code drew. numpy promises the words of its bit
generators and nothing made of them, and its logarithms come from the C library of the machine. So
only the words are taken from numpy; integers, orders and floats are made of them here.

- `legacy`: `np.random.RandomState`, MT19937 (`np.random.seed`, `np.random.shuffle`, ...).
- `modern`: `np.random.Generator`, PCG64 (`np.random.default_rng`), as of numpy 1.22 to 2.4.
- `pythons`: `random.Random`.

Integers and orders are those of numpy and python, bit for bit. Floats that go through a logarithm
may differ from them in the last digits, and are the same on every machine.
"""
