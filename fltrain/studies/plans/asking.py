"""All that a plan asks for, as far as the plan alone says it. Needs no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .choice import choose_cells
from .expansion import AskedCell, expand_plan
from .plan import StudyPlan, read_plan
from .plan_text import PlanText, read_plan_text, write_plan_text
from .searching import AskedSearch, list_searches


@dataclass(frozen=True)
class AskedPlan:
    """A plan, its cells, and what is tried before some of them."""

    plan: StudyPlan
    cells: Sequence[AskedCell]
    searches: Sequence[AskedSearch]


def ask_plan(
    plan: str | Path | Mapping[str, Any] | PlanText,
    only: Mapping[str, Sequence[str]] | None = None,
) -> AskedPlan:
    """Read a plan: a file of TOML, or its words.

    only: values on axes, of which a cell must have one on each; others are left out. UsageError,
    with the line, for a word or a value that cannot be, whatever data and machine are.
    """
    if isinstance(plan, PlanText):
        read = read_plan(plan)
    elif isinstance(plan, Mapping):
        read = read_plan(PlanText(values=plan, text=write_plan_text(plan)))
    else:
        read = read_plan(read_plan_text(Path(plan)), Path(plan).stem)
    cells = choose_cells(expand_plan(read), only or {})
    return AskedPlan(read, cells, list_searches(read, cells))
