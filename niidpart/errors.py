"""The errors that niidpart and fltrain raise on purpose; any other exception is a bug of theirs."""


class UsageError(ValueError):
    """What was asked for cannot be done as it was asked.

    The message says what came, what is needed and what to do. Commands print it and end with exit
    code 2. It is a ValueError, so that `except ValueError` catches it too.

    Examples
    --------
    >>> import niidpart
    >>> try:
    ...     niidpart.make([0, 1, 0, 1], "homo", n_parties=9)
    ... except niidpart.UsageError as error:
    ...     print(error)
    9 parties cannot share 4 examples; use at most 4 parties
    """


class FileFault(ValueError):
    """A file or folder is not as it must be.

    Commands print the message and end with exit code 1.

    Examples
    --------
    >>> import niidpart
    >>> issubclass(niidpart.SplitError, niidpart.FileFault)
    True
    """


def require_type(what: str, value: object, kind: type | tuple[type, ...], needed: str = "") -> None:
    """Raise UsageError unless the value is of the type. needed: the type in the caller's words."""
    if isinstance(value, kind):
        return
    if not needed and isinstance(kind, type):
        needed = f"a {kind.__name__}"
    is_short = value is None or isinstance(value, str | int | float)
    got = repr(value)[:60] if is_short else f"of the type {type(value).__name__}"
    raise UsageError(f"{what} is {got}; {needed} is needed")
