"""What every reader makes of one file, and whether that may be."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import niidpart
from niidpart.checking import rederivation
from niidpart_cli.split import main as niidpart_command

from ..outcome import Outcome
from .bases import Base, collect_answers
from .damage import Mutant
from .serving import Server
from .swift import Memory

ATTEMPTED = 100  # one mutant in so many goes through every reader, whatever becomes of it,
STARTED = 1000  # and one in so many as a user would: with processes started, and nothing remembered
FOLLOWING = ("draws/", "train/counts", "val/counts", "test/counts")  # follow from recipe and labels


class Judge:
    """Reads mutants, and knows the good files."""

    def __init__(self, path: Path, bases: list[Base]):
        self.path = path
        self.by_digest = {base.digest: base for base in bases}
        self.memory = Memory(bases)
        self.server = Server()

    def examine(self, mutant: Mutant, number: int) -> Outcome:
        """What the readers say of a mutant: `check`, `read` and `open`; of some all the others too."""
        outcome = Outcome(mutant.kind)
        split = self.read(outcome, mutant)
        if number % STARTED == 0:
            self._read_further(outcome, mutant, split)
        elif number % ATTEMPTED == 0:
            with self.server.used():
                self._read_further(outcome, mutant, split)
        elif "refused" not in outcome.words:
            with self.server.used(), self.memory.used():
                self._read_further(outcome, mutant, split)
        return outcome

    def read(self, outcome: Outcome, mutant: Mutant) -> Any:
        """Take down what `check`, `read` and `open` say of a mutant; return what `read` does."""
        self.path.write_bytes(mutant.whole)
        faults = self._call(outcome, "check", niidpart.check)
        split = self._call(outcome, "read", niidpart.read)
        if faults is not None and split is not None:
            self._hold_together(outcome, mutant, faults, split)
        return split

    def _hold_together(self, outcome: Outcome, mutant: Mutant, faults: Any, split: Any) -> None:
        """Compare what `check`, `read` and `open` say with each other, and with the good file."""
        if isinstance(split, niidpart.SplitError):
            outcome.words.append("refused")
            if number_rules(split.faults) != number_rules(faults) or not faults:
                outcome.findings.append(f"check says {faults}, read says {split.faults}")
            if not all(fault.message.isprintable() for fault in faults):
                outcome.findings.append("a message would steer a terminal")
            self._look_into(outcome, mutant, None)
            return
        if faults:
            outcome.findings.append(f"check says {faults}, read takes it")
        answers = collect_answers(split)
        self._look_into(outcome, mutant, answers)
        self._compare(outcome, mutant, split, answers)
        outcome.findings += find_unsound(split)

    def _call(self, outcome: Outcome, reader: str, function: Callable[[Path], Any]) -> Any:
        """What a reader returns, or the refusal that it raises; None for anything else."""
        try:
            return function(self.path)
        except niidpart.SplitError as error:
            return error
        except Exception:
            outcome.words.append("crashed")
            outcome.findings.append(f"{reader}: {traceback.format_exc(limit=-4)}")
            return None

    def _look_into(self, outcome: Outcome, mutant: Mutant, right: dict[str, bytes] | None) -> None:
        """Open the file and read all that can be read, party by party. right: what `read` gives."""

        def look(path: Path) -> tuple[str, dict[str, bytes]]:
            with niidpart.open(path) as opened:
                return opened.digest, collect_answers(opened)

        found = self._call(outcome, "open", look)
        if found is None:
            return
        if isinstance(found, niidpart.SplitError):
            if right is not None:
                outcome.findings.append(f"open refuses what read takes: {found.faults}")
            return
        digest, answers = found
        if right is not None:
            if answers != right:
                outcome.findings.append("open tells another split than read")
            return
        # It compares no digest (docs/format.md): whoever makes checksums fit gets past it, chance may not, but
        # where another program stored the values without checksums.
        good = self.by_digest.get(digest)
        is_same = good is not None and answers == good.answers
        outcome.words.append("opened as it was" if is_same else "opened as another")
        if not is_same and not mutant.is_fitted and mutant.base.chunks:
            outcome.findings.append("silently wrong: open tells another split under the digest")

    def _compare(
        self,
        outcome: Outcome,
        mutant: Mutant,
        split: niidpart.FederatedSplit,
        answers: dict[str, bytes],
    ) -> None:
        """Say what an accepted file is: as it was, under its digest and otherwise, or another."""
        good = self.by_digest.get(split.digest)
        if good is None:
            outcome.words.append("another")
            if not mutant.is_fitted:
                outcome.findings.append("chance made a split with a digest that fits")
            return
        keys = answers.keys() | good.answers.keys()
        differing = {key for key in keys if answers.get(key) != good.answers.get(key)}
        if not differing:
            outcome.words.append("same")
        elif all(key.startswith(FOLLOWING) for key in differing) and mutant.is_fitted:
            outcome.words.append("forged")
        else:
            outcome.words.append("silently wrong")
            outcome.findings.append(f"silently wrong: {sorted(differing)}")

    def _read_further(self, outcome: Outcome, mutant: Mutant, split: Any) -> None:
        """The untrusted reader, the stated skew, `show` and `verify`. split: what `read` says."""
        outcome.words.append("read by all")
        untrusted = self._call(outcome, "untrusted", read_untrusted)
        if split is None or untrusted is None:
            return
        refused = isinstance(split, niidpart.SplitError)
        if refused != isinstance(untrusted, niidpart.SplitError):
            outcome.findings.append(f"read and the untrusted reader disagree: {split}, {untrusted}")
        elif not refused and collect_answers(untrusted) != collect_answers(split):
            outcome.findings.append("the untrusted reader tells another split")
        self._call(outcome, "skew", look_at_skew)
        self._show(outcome, refused)
        self._verify(outcome, mutant, split)

    def _show(self, outcome: Outcome, refused: bool) -> None:
        result = CliRunner().invoke(niidpart_command, ["show", str(self.path)])
        if result.exit_code != int(refused) or not isinstance(result.exception, SystemExit | None):
            outcome.findings.append(f"show ends with {result.exit_code}: {result.exception!r}")
        if not result.output.replace("\n", "").isprintable():
            outcome.findings.append("show would steer the terminal")

    def _verify(self, outcome: Outcome, mutant: Mutant, split: Any) -> None:
        """Verify beside the data of the good file whose digest is stated, else of the one that it was."""
        if isinstance(split, niidpart.SplitError):
            verdict = self._call(outcome, "verify", niidpart.verify)
            if verdict is not None and number_rules(verdict.faults) != number_rules(split.faults):
                outcome.findings.append(f"verify says {verdict.faults}, read says {split.faults}")
            return
        good = self.by_digest.get(split.digest, mutant.base)
        data = good.data
        verdict = self._call(outcome, "verify", lambda path: niidpart.verify(path, data=data))
        if verdict is None:
            return
        if verdict.faults:
            outcome.words.append("verify: faults")
        elif not verdict.derived:
            outcome.words.append("verify: not derived")
        else:
            outcome.words.append("verify: right")
            self._derive(outcome, split, data)

    def _derive(self, outcome: Outcome, split: niidpart.FederatedSplit, data: Any) -> None:
        """Hold what `verify` found right to everything that the recipe gives."""
        derived = collect_answers(rederivation.derive(data, split.recipe))
        told = collect_answers(split)
        del derived["source"], told["source"]
        if derived != told:
            outcome.findings.append("verify takes another split than the recipe gives")


def read_untrusted(path: Path) -> niidpart.FederatedSplit:
    return niidpart.read(path, untrusted=True)


def look_at_skew(path: Path) -> dict[str, Any]:
    """The skew that an open file tells."""
    with niidpart.open(path) as opened:
        return opened.skew.to_json()


def number_rules(faults: list[niidpart.Fault]) -> list[int]:
    """The broken rules. What HDF5 says of a damaged structure is another text at another time."""
    return [fault.rule for fault in faults]


def find_unsound(split: niidpart.FederatedSplit) -> list[str]:
    """The rules on who holds what that a split breaks, by sets and lists."""
    found, holder = [], {}
    held_twice = False
    for name, part in split.parts.items():
        if part.indptr[0] != 0 or part.indptr[-1] != len(part.indices):
            found.append(f"{name}: indptr does not cover indices")
        for p in range(split.n_parties):
            rows = part.party(p).tolist()
            if rows != sorted(set(rows)) or not all(0 <= row < split.source.n for row in rows):
                found.append(f"{name}: the rows of party {p} are {rows}")
            if part.counts[p].sum() != len(rows) or part.counts[p].min() < 0:
                found.append(f"{name}: the counts of party {p} are {part.counts[p]}")
            for row in rows:
                held_twice |= (row, name) in holder.items()
                if holder.setdefault(row, name) != name:
                    found.append(f"example {row} is in {name} and in {holder[row]}")
    if held_twice and not split.overlaps:
        found.append("an example has two holders")
    texts = [split.recipe.strategy, split.source.name, split.source.revision]
    texts += split.source.class_names
    if not all(text.isprintable() for text in texts):
        found.append("a name would steer a terminal")
    if any(column.shape[:1] != (split.n_parties,) for column in split.columns.values()):
        found.append("a column has not one value for each party")
    return found
