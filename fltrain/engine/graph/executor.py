"""The stacked engine with its steps captured."""

from collections.abc import Mapping, Sequence

from ...tree import clone
from ..execution import Execution
from ..jobs import Broadcast, Cell, Job
from ..rates import Rates
from ..stacked.executor import ChunkPlan, Stacked
from ..stacked.stack import Stack, StackOutcome
from ..updates import Updates
from .batches import find_limits
from .captured import make_capture
from .refusal import try_step
from .steps import StaticSteps
from .weights import can_lie_in_rows

_DEFAULT = Execution(engine="graph")


class Graphed(Stacked):
    """Trains as `Stacked`, each step a CUDA graph that is replayed; without CUDA they are called.

    Its results are `Stacked`'s to rounding. Memory stays from round to round for each form of a
    chunk (its number of jobs, above all) that the round before had.
    """

    # Beside what steps that are called take, graphs have memory of their own for what is between
    # their kernels. An estimate: no GPU was at hand.
    memory_share = 2.0

    def __init__(
        self,
        cells: Sequence[Cell],
        execution: Execution = _DEFAULT,
        *,
        convolutions: str | None = None,
        chunk: int | None = None,
    ):
        super().__init__(cells, execution, convolutions=convolutions, chunk=chunk)
        self._lies_in_rows: dict[int, bool] = {}  # by group, as those below
        self._steps: dict[int, list[StaticSteps]] = {}
        self._used: dict[int, list[StaticSteps]] = {}

    def _start_group(self, g: int) -> None:
        """Let go of the memory of forms that this group did not have in the round before."""
        self._steps[g] = self._used.pop(g, [])

    def _train_stack(self, g: int, stack: Stack) -> StackOutcome:
        stack.begin()
        updates, rates = stack.prepare_updates()
        steps = self._find_steps(g, stack, updates, rates)
        losses = steps.run(stack, updates, rates)
        outcome = stack.end(updates, losses)
        # what parties keep is stored after all chunks, of which the next one has the same memory
        return outcome._replace(own=clone(outcome.own))

    def _find_steps(self, g: int, stack: Stack, updates: Updates, rates: Rates) -> StaticSteps:
        """Return the steps of this stack's form, made where there are none."""
        cells = [self.cells[c] for c in self.groups[g]]
        n_rows = len(stack.batches.table.sizes)
        limits = find_limits(cells, jobs=len(stack.jobs), rows=n_rows)
        used = self._used.setdefault(g, [])
        for known in self._steps[g]:
            if known.is_for(stack, updates, rates, limits):
                if known not in used:
                    used.append(known)
                return known
        steps = StaticSteps(
            stack,
            updates,
            rates,
            limits=limits,
            lies_in_rows=self._lies_in_rows[g],
            capture=make_capture(stack.device, cells[0].algorithm.name),
        )
        self._steps[g].append(steps)
        used.append(steps)
        return steps

    def _plan_chunks(
        self, g: int, broadcasts: Mapping[int, Broadcast], jobs: list[Job]
    ) -> ChunkPlan:
        """Find out, besides what `Stacked` does, whether a step can be captured."""
        plan = super()._plan_chunks(g, broadcasts, jobs)
        job = self._pick_largest(jobs)
        stack = Stack(
            cells=self.cells,
            broadcasts=broadcasts,
            jobs=[job],
            task=self.tasks[g],
            mixing=plan.mixing,
        )
        stack.begin()
        step = try_step(stack, width=stack.batches.table[0].widest)
        # what moves some parameters alone is done parameter by parameter
        self._lies_in_rows[g] = not step.moves and can_lie_in_rows(stack.local.params)
        return plan
