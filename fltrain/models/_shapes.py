"""Which shapes a model takes."""

from niidpart.errors import UsageError


def require_image(
    model: str, shape: tuple[int, ...], sides: tuple[int, ...] = (), instead: str = "hidden200"
) -> None:
    """Raise a UsageError unless `shape` is that of a square image with one of these sides.

    Of any image where no sides are given. instead: the model that takes other shapes.
    """
    is_image = len(shape) == 3
    if is_image and not sides:
        return
    if is_image and shape[1:] in [(side, side) for side in sides]:
        return
    size = " or ".join(f"{side} x {side}" for side in sides)
    wanted = f"images of {size} pixels" if sides else "images, (channels, height, width)"
    raise UsageError(
        f"{model} takes {wanted}, these examples have shape {shape}; use --model {instead}"
    )
