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
