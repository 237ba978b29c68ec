"""What shapes a model takes."""

from niidpart.errors import UsageError


def check_image(
    model: str, shape: tuple[int, ...], sides: tuple[int, ...] = (), instead: str = "hidden200"
) -> None:
    """ValueError unless `shape` is that of a square image with one of these sides; of any image where no sides are given."""
    if len(shape) == 3 and (not sides or shape[1:] in [(side, side) for side in sides]):
        return
    size = " or ".join(f"{side} x {side}" for side in sides)
    wanted = f"images of {size} pixels" if sides else "images, (channels, height, width)"
    raise UsageError(
        f"{model} takes {wanted}, these examples have shape {shape}; use --model {instead}"
    )
