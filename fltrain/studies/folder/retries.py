"""Failed cells are tried again where somebody asks for it."""

from collections.abc import Sequence

from .claims import FAILED
from .roster import Roster
from .study_folder import StudyFolder


def allow_retries(study: StudyFolder, names: Sequence[str]) -> list[str]:
    """Let the failed cells be tried again. Return their names.

    A setting of a search that diverged is what it is: it has lost.
    """
    failed = []
    roster = Roster(study)
    for name, standing in study.claims.list_standings(names).items():
        end = study.claims.read_end(name, standing.number) if standing.has_failed else {}
        if end.get("end") == FAILED and not roster.has_merely_lost(name, end):
            study.claims.allow_retry(name, standing.number)
            failed.append(name)
    return failed
