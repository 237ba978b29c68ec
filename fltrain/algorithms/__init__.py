"""One algorithm a file; the folder is the registry. `fltrain.algorithms.fedavg()` builds the one in `fedavg.py`.

A constructor takes the algorithm's options and returns an `Algorithm`. It imports `fltrain.interface`, `fltrain.tree`,
`fltrain.draws`, and other algorithms that it starts from; nothing of the engine. What several share is in files that begin with `_`.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import Registry

from ..interface import Algorithm

ALGORITHMS = Registry("fltrain.algorithms", "algorithm")


def build(spec: str, **options: Any) -> Algorithm:
    """The algorithm of that name, or `file.py:function`, with these options; remembers both, so that a run can be resumed."""
    spec = ALGORITHMS.resolve(spec)
    complete = ALGORITHMS.complete(spec, options)
    algorithm = ALGORITHMS.find(spec)(**complete)
    if not isinstance(algorithm, Algorithm):
        raise UsageError(f"{spec} returned {algorithm!r}; an fltrain.Algorithm is needed")
    object.__setattr__(algorithm, "spec", spec)
    object.__setattr__(algorithm, "options", complete)
    return algorithm


def _constructor(name: str) -> Callable[..., Algorithm]:
    function = ALGORITHMS.find(name)

    @functools.wraps(function)
    def constructor(*values: Any, **options: Any) -> Algorithm:
        return build(name, **inspect.signature(function).bind(*values, **options).arguments)

    return constructor


# after all files are loaded, so that `fltrain.algorithms.fedavg` is the constructor and not its file
globals().update({name.replace("-", "_"): _constructor(name) for name in ALGORITHMS.names()})
