"""Jobs on threads, each trained by one call of compiled code.

Forward, backward and the optimiser's step are fused, with the batch in vector lanes.
"""

import ctypes
import functools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from ... import tree
from ...counting import ceil_div, count_batches
from ...flat_tree import FlatTree, RowLayout
from ...tasks.model_task import ModelTask
from ...tasks.passes import make_batch_fault
from ..batches import iterate_in_order
from ..drift import subtract_weights
from ..execution import Execution
from ..jobs import Broadcast, Cell, Done, Job, make_local
from ..processes import count_cores
from ..ranks import current_ranks
from ..scoring import Candidate
from ..sums import Sums
from ..threads import use_threads
from .arguments import flatten_parameters
from .build import load_library
from .bundles import bundle_jobs
from .eligibility import require_declared_direction, require_native, tabulate_cell
from .flat_job import (
    BegunJob,
    SentModel,
    flatten_job,
    keep_optimizer,
    unflatten_buffers,
    unflatten_carry,
)
from .layers import LayerTable
from .scoring import score_candidates
from .sums import make_add_pair
from .training import train_flat_jobs

# By cell, the model that a job of the round received last: its number, and itself.
LastSent = dict[int, tuple[int, SentModel]]

_DEFAULT = Execution(engine="native")


class Native:
    """Trains jobs on threads of this process, bundles with the longest first.

    A job is the work of one thread, so the result does not depend on their number. The algorithm's
    own functions run in the thread that asks for the round; only what is between `begin` and
    `finish` is native. Torch has one thread meanwhile: more of them would wait, busily, on the
    cores that the jobs need.
    """

    def __init__(self, cells: Sequence[Cell], execution: Execution = _DEFAULT):
        """Check that the cells can be trained so, and compile; UsageError where either fails."""
        for cell in cells:
            require_native(cell)
        self.cells = cells
        self.layers = [tabulate_cell(cell) for cell in cells]
        # of those with one task any: what terms of the loss read changes no answer
        self.layers_of_task: dict[ModelTask, LayerTable] = dict(
            zip((cell.task for cell in cells), self.layers, strict=True)
        )
        self.library = load_library(execution.library)
        self.add_pair = make_add_pair(self.library)
        self.n = count_threads(execution)
        self.stop = ctypes.c_int32(0)  # looked at by all calls, between two steps
        self.pool = ThreadPoolExecutor(self.n, "fltrain native")

    def train(
        self, broadcasts: Mapping[int, Broadcast], jobs: Sequence[Job], sums: Mapping[int, Sums]
    ) -> Iterator[Done]:
        """Train the jobs; MemoryError where a job's memory cannot be had."""
        with use_threads(1):
            yield from self._run_round(broadcasts, jobs, sums)

    def _run_round(
        self, broadcasts: Mapping[int, Broadcast], jobs: Sequence[Job], sums: Mapping[int, Sums]
    ) -> Iterator[Done]:
        """Keep all threads busy until no job is left."""
        last_sent: LastSent = {}
        sizes = [layers.n_parameters for layers in self.layers]
        bundles = bundle_jobs(self.cells, jobs, sizes, self.n)
        busy: dict[Future[list[float]], list[BegunJob]] = {}

        def start_next() -> None:
            bundle = next(bundles, None)
            if bundle is None:
                return
            begun = []
            for place in bundle:
                job = jobs[place]
                begun.append(self._begin(broadcasts[job.cell], job, place, last_sent))
            round = broadcasts[begun[0].job.cell].round
            busy[self.pool.submit(self._train, begun, round)] = begun

        # one more than there are threads, so that none waits for the next
        for _ in range(self.n + 1):
            start_next()
        while busy:
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                begun = busy.pop(future)
                start_next()
                for one, loss in zip(begun, future.result(), strict=True):
                    yield self._finish(one, loss, sums[one.job.cell])

    def score(self, task: ModelTask, candidates: Iterable[Candidate]) -> list[tuple[int, float]]:
        """Return what `scoring.score_models` does, by the compiled forward pass.

        For the task of one of the cells. The same bits for any number of workers.
        """
        layers = self.layers_of_task[task]
        with use_threads(1):
            return score_candidates(self.library, layers, self.pool, candidates)

    def close(self) -> None:
        """End what is still being trained after its step."""
        self.stop.value = 1
        self.pool.shutdown(cancel_futures=True)

    def _begin(self, broadcast: Broadcast, job: Job, place: int, last_sent: LastSent) -> BegunJob:
        """Return a job after `begin`, with the numbers that the compiled code trains."""
        cell = self.cells[job.cell]
        examples = functools.partial(iterate_in_order, cell.data.train, job.party)
        task = cell.task.bind_examples(examples)
        sent = self._find_sent(broadcast, job, last_sent)
        local = cell.algorithm.begin(task, make_local(cell, broadcast, job, sent.tree))
        layers = self.layers[job.cell]
        _require_whole_batches(cell, job, layers)
        flat = flatten_job(
            cell=cell,
            job=job,
            local=local,
            direction=require_declared_direction(cell),
            sent=sent,
            layers=layers,
        )
        return BegunJob(job=job, place=place, local=local, flat=flat)

    def _find_sent(self, broadcast: Broadcast, job: Job, last_sent: LastSent) -> SentModel:
        """Return the model that a job receives: the cell's last one, as a rule, which is kept."""
        model, sent = last_sent.get(job.cell, (None, None))
        if sent is None or model != job.model:
            received = tree.index(broadcast.models, job.model)
            layers = self.layers[job.cell]
            is_whole = len(received) == len(layers.names)
            row = flatten_parameters(received, layers) if is_whole else None
            layout = RowLayout.describe(received, layers.names) if is_whole else None
            sent = SentModel(received, row, layout)
            last_sent[job.cell] = job.model, sent
        return sent

    def _train(self, begun: Sequence[BegunJob], round: int) -> list[float]:
        """Train jobs of one cell on a thread of the pool, and return their summed losses."""
        cell = begun[0].job.cell
        return train_flat_jobs(
            library=self.library,
            layers=self.layers[cell],
            cell=self.cells[cell],
            begun=begun,
            round=round,
            stop=self.stop,
        )

    def _finish(self, begun: BegunJob, loss: float, sums: Sums) -> Done:
        """Add the upload of a trained job to the sums."""
        if not math.isfinite(loss):
            return Done(begun.place, loss, {})
        job, local, flat = begun.job, begun.local, begun.flat
        cell = self.cells[job.cell]
        layers = self.layers[job.cell]
        n_batches = count_batches(int(job.work.n), cell.settings, int(job.work.steps))
        after = local._replace(
            params=FlatTree(flat.w, flat.layout),
            buffers=unflatten_buffers(flat.buffers, local.buffers, layers, n_batches),
            carry=unflatten_carry(local, flat),
        )
        upload, own = cell.algorithm.finish(cell.task, after, job.work)
        sums.add(upload, job.model, self.add_pair)
        kept = keep_optimizer(flat, job)
        moved = subtract_weights(after.params, local.params) if job.is_measured else {}
        return Done(begun.place, loss, job.keep_own(own | kept), moved)


def _require_whole_batches(cell: Cell, job: Job, layers: LayerTable) -> None:
    """Raise the UsageError that torch's batch norm gives for a batch of too few examples."""
    n, settings = int(job.work.n), cell.settings
    per_epoch = ceil_div(n, settings.batch_size)
    rest = n - (per_epoch - 1) * settings.batch_size
    smallest = rest
    if count_batches(n, settings, int(job.work.steps)) < per_epoch:
        smallest = settings.batch_size
    if smallest < layers.least_batch:
        fault = make_batch_fault()
        fault.add_note(cell.describe_batches(job.party))
        raise fault


def count_threads(execution: Execution) -> int:
    """Return how many threads train.

    As many as the execution names, else as there are cores, divided by the ranks of this machine
    where several train the run together.
    """
    if execution.workers:
        return execution.workers
    ranks = current_ranks().size
    # torchrun says how many are here; without it all might be
    here = int(os.environ.get("LOCAL_WORLD_SIZE", ranks)) if ranks > 1 else 1
    return max(1, count_cores() // here)
