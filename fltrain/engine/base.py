"""What executors that score in torch have in common."""

from ..inputs.examples import PartyExamples
from ..tasks.model_task import ModelTask
from ..tree import Tree
from .scoring import score_model


class TorchExecutor:
    """An executor that scores one model after another in torch, and starts nothing of its own."""

    def score(
        self,
        task: ModelTask,
        params: Tree,
        buffers: Tree,
        examples: PartyExamples,
        start: int,
        end: int,
    ) -> tuple[int, float]:
        """Return (number right, summed loss) of one model on examples start..end."""
        return score_model(
            task=task, params=params, buffers=buffers, examples=examples, start=start, end=end
        )

    def close(self) -> None:
        """Do nothing: there is nothing to end."""
