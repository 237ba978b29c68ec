"""Examples of a model that reads letters: numbers of letters, and nothing else."""

from niidpart.errors import UsageError

from .examples import PartyExamples
from .federated import Federated

_ROWS = 10_000  # looked at together


def require_letters(data: Federated, n_letters: int) -> None:
    """Raise UsageError where a number of an example is none of a letter's, 0 to n_letters - 1.

    Looked at as the model gets them in evaluation. An index that is out of range would be an error
    of torch's in the middle of a run, and on a GPU one that ends the process.
    """
    for part in (data.train, data.val, data.test, data.global_test):
        if part is not None:
            _require_in_part(part, n_letters)
    if data.new_parties is not None:
        require_letters(data.new_parties, n_letters)


def _require_in_part(part: PartyExamples, n_letters: int) -> None:
    for start in range(0, len(part.y), _ROWS):
        x = part.inputs(slice(start, start + _ROWS))
        is_letter = (x >= 0) & (x < n_letters) & (x == x.floor())
        if bool(is_letter.all()):
            continue
        value = float(x[~is_letter][0])
        raise UsageError(
            f"the model reads letters, numbers from 0 to {n_letters - 1}, and an example has "
            f"{value:.4g}; give text as numbers, with --normalise none and no noise, or another "
            "--model: mlp is for tables"
        )
