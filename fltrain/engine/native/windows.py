"""Windows of convolutions and pooling: how they are laid on rows and on columns."""

from typing import Any, NamedTuple

from ...counting import ceil_div


class WindowAxis(NamedTuple):
    """A window on one axis, laid every `stride` places of an image with so many zeros around it.

    step: from one of its numbers to the next.
    """

    k: int
    stride: int
    pad: int
    step: int = 1

    @property
    def reach(self) -> int:
        """Places from its first number to its last, both counted."""
        return (self.k - 1) * self.step + 1

    def count_places(self, size: int) -> int:
        """Return at how many places of an axis it is laid whole."""
        return (size + 2 * self.pad - self.reach) // self.stride + 1

    def count_rounded_up(self, size: int) -> int:
        """Return the same with a last one that ends beyond the zeros, if it begins before them."""
        places = ceil_div(size + 2 * self.pad - self.reach, self.stride) + 1
        is_beyond = (places - 1) * self.stride >= size + self.pad
        return places - 1 if is_beyond else places


def find_window(
    kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1
) -> tuple[WindowAxis, WindowAxis]:
    """Return the window of a layer on rows and on columns."""
    pairs = map(as_pair, (kernel_size, stride, padding, dilation))
    rows, columns = zip(*pairs, strict=True)
    return WindowAxis(*rows), WindowAxis(*columns)


def as_pair(value: Any) -> tuple[Any, Any]:
    """Return what is said of rows and of columns, where one number stands for both."""
    if isinstance(value, int) or value is None:
        return value, value
    first, second = value
    return first, second
