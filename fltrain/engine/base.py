"""What executors that score in torch have in common."""

from collections.abc import Iterable

from ..tasks.model_task import ModelTask
from .scoring import Candidate, score_models


class TorchExecutor:
    """An executor that scores one model after another in torch, and starts nothing of its own."""

    def score(self, task: ModelTask, candidates: Iterable[Candidate]) -> list[tuple[int, float]]:
        """Return (number right, summed loss) of each candidate."""
        return score_models(task, candidates)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""
