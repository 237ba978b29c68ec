"""Algorithms written before server functions took `hyper`: they run, with a warning."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WITH_HYPER = {
    "init": "init(task, info, models, buffers, hyper)",
    "plan": "plan(state, cohort, round, hyper)",
    "aggregate": "aggregate(state, plan, total, hyper)",
    "serve": "serve(state, hyper)",
    "personal": "personal(state, hyper)",
    "serve_new": "serve_new(state, hyper)",
    "adapt": "adapt(module, hyper)",
    "traffic": "traffic(state, plan, task, hyper)",
    "exam": "exam(state, plan, hyper)",
    "grade": "grade(state, plan, accuracy, hyper)",
}  # each function of an algorithm that takes `hyper`, and how it is called


@dataclass(frozen=True)
class WithoutHyper:
    """A function of the old signature, called with the new one."""

    function: Callable[..., Any]

    def __call__(self, *values: Any) -> Any:
        return self.function(*values[:-1])


def adapt_old_signatures(
    name: str, functions: dict[str, Callable[..., Any] | None]
) -> dict[str, WithoutHyper]:
    """Return those functions of an algorithm that do not take `hyper`, wrapped.

    One warning names them all.
    """
    old = {
        field: WithoutHyper(function)
        for field, function in functions.items()
        if function is not None and _lacks_hyper(function, WITH_HYPER[field].count(",") + 1)
    }
    if old:
        asked = ", ".join(WITH_HYPER[field] for field in old)
        warnings.warn(
            f"{name}: {', '.join(old)} take no `hyper`, the algorithm's numbers, which now come "
            f"last; write {asked}, and hand `hyper` on to the functions of other "
            "algorithms that they call",
            FutureWarning,
            stacklevel=2,
        )
    return old


def _lacks_hyper(function: Callable[..., Any], n: int) -> bool:
    """Return whether a function cannot be called with n values, but with one fewer."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of compiled code, say: nothing is known of it
        return False
    return not _can_bind(signature, n) and _can_bind(signature, n - 1)


def _can_bind(signature: inspect.Signature, n: int) -> bool:
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True
