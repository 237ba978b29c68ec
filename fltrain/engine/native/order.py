"""The operations of a model as they cost least: pooling before ReLU, activations in place."""

from collections import Counter

from .ops import ACTIVATIONS, Op, OpKind, make_relu, make_sum


def count_readers(ops: list[Op]) -> Counter[int]:
    """Return how many operations read each tensor."""
    readers: Counter[int] = Counter()
    for op in ops:
        readers.update({op.source, op.also})
    return readers


def pool_before_relu(ops: list[Op]) -> list[Op]:
    """Return the operations with each ReLU behind the max-pooling that alone follows it.

    The same values and gradients, on fewer numbers.
    """
    ops = list(ops)
    readers = count_readers(ops)
    for i in range(len(ops) - 1):
        first, pool = ops[i], ops[i + 1]
        is_followed = pool.kind == OpKind.POOL and pool.source == first.to
        if first.kind == OpKind.RELU and is_followed and readers[first.to] == 1:
            shape = (pool.out, pool.oh, pool.ow)
            ops[i] = pool._replace(source=first.source, to=first.to)
            ops[i + 1] = make_relu(shape)._replace(source=first.to, to=pool.to)
    return ops


def work_in_place(ops: list[Op]) -> list[Op]:
    """Return the operations with the activations in place, and tensors numbered anew.

    An activation whose input is another's output, or is read elsewhere too, works on a copy: the
    way back needs what the one gave, and what the other reads.
    """
    readers = count_readers(ops)
    number_of = {0: 0}  # of the tensors that are left
    is_active = {0: False}  # whether an activation has worked on them
    placed = []
    for op in ops:
        source = number_of[op.source]
        if op.kind == OpKind.TAP:
            placed.append(op._replace(source=source, to=source))
            continue
        is_activation = op.kind in ACTIVATIONS.values()
        is_free = readers[op.source] == 1 and not is_active[source]
        new = len(is_active)
        if is_activation and not is_free:
            shape = (op.c, op.h, op.w)
            placed.append(make_sum(shape)._replace(source=source, to=new))
            source = new
        to = new
        if is_activation:
            to = source
        is_active[to] = is_activation
        number_of[op.to] = to
        also = number_of[op.also] if op.also >= 0 else -1
        placed.append(op._replace(source=source, also=also, to=to))
    return placed
