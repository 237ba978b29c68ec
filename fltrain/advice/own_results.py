"""A study of one's own as evidence on algorithms: its splits, and what each reached beside FedAvg.

A rule is judged by its regret on data that it has not seen: each data set (of a study of one, each
split) is left out, the rule chooses by the others, and regret is what the best row has there more
than the chosen one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from niidpart.errors import UsageError

from ..evidence.comparing import Comparison, JudgeRules
from ..evidence.families import ComparisonWords, compare_rows
from ..evidence.measures import MeasureWords, RunMeasure, list_measures
from ..evidence.reading import RecordGroup
from ..evidence.records import SEED_AXES, SPLIT_AXIS, RunRecord, is_varied, list_axes
from ..evidence.tables import TableAxes, TableBody, build_body
from .measured import SplitProfile
from .printed_evidence import BASELINE

_SEEDS_AND_NAMES = (*SEED_AXES, "run", "setting", "split_seed")


@dataclass(frozen=True)
class SplitEvidence:
    """What a study knows of one split.

    Parameters
    ----------
    split : str
        As the study calls it.
    dataset : str
    profile : SplitProfile
        Of its first draw.
    means : mapping of str to float
        By row: an algorithm, with what else tells it from others.
    comparisons : sequence of Comparison
        Each row with FedAvg's, corrected over all of them.
    """

    split: str
    dataset: str
    profile: SplitProfile
    means: Mapping[str, float]
    comparisons: Sequence[Comparison]

    @property
    def claimed(self) -> list[str]:
        """The rows that are claimed to be better than FedAvg's, the best mean first."""
        better = {one.better for one in self.comparisons}
        names = [name for name in self.means if name in better and name != self.baseline]
        return sorted(names, key=lambda name: -self.means[name])

    @property
    def baseline(self) -> str:
        """FedAvg's row."""
        return next(name for name in self.means if name.partition(" ")[0] == BASELINE)


@dataclass(frozen=True)
class RuleRegret:
    """How a rule fares on what it has not seen.

    Parameters
    ----------
    rule : str
    mean, worst : float
        Regret over the splits that were left out.
    chosen : mapping of str to str
        By split, what it chose there.
    """

    rule: str
    mean: float
    worst: float
    chosen: Mapping[str, str]


@dataclass(frozen=True)
class OwnAnswer:
    """What a study says of a split.

    Parameters
    ----------
    nearest : SplitEvidence
        The split of the study whose skew is nearest.
    algorithm : str
        The row that is claimed to be better than FedAvg's there; FedAvg's where none is.
    reason : str
    regrets : sequence of RuleRegret
        Of this rule and of others.
    left_out : str
        What was left out at a time: "data set" or "split".
    measure : RunMeasure
    """

    nearest: SplitEvidence
    algorithm: str
    reason: str
    regrets: Sequence[RuleRegret]
    left_out: str
    measure: RunMeasure


def ask_results(
    groups: Sequence[RecordGroup],
    profile: SplitProfile,
    profiles: Callable[[RunRecord], SplitProfile],
    tree: Callable[[SplitProfile], str],
) -> OwnAnswer:
    """Return what the results of a study say of a split with this skew.

    profiles: the skew of the split of a run. tree: what the paper's tree says of a skew.
    """
    records = {record.name: record for group in groups for record in group.records}
    body, measure = _build_table(groups[0], list(records.values()))
    known = _list_evidence(body, measure, profiles)
    nearest = _find_nearest(profile, known)
    units = {one.dataset for one in known}
    by_dataset = len(units) > 1
    return OwnAnswer(
        nearest=nearest,
        algorithm=_choose_tested(nearest),
        reason=_explain(nearest),
        regrets=_judge_rules(known, tree, by_dataset=by_dataset),
        left_out="data set" if by_dataset else "split",
        measure=measure,
    )


def _build_table(group: RecordGroup, records: Sequence[RunRecord]) -> tuple[TableBody, RunMeasure]:
    (measure,) = list_measures(MeasureWords(show=("last",)), records, group.derive)
    if SPLIT_AXIS not in list_axes(records):
        raise UsageError("--from needs a study, whose splits have names; runs alone have none")
    by = _list_row_axes(records)
    return build_body(records, [measure], TableAxes(by=by, columns=(SPLIT_AXIS,))), measure


def _list_row_axes(records: Sequence[RunRecord]) -> list[str]:
    """Return the axes that vary within a split, but for seeds: those of algorithms."""
    within: dict[str, list[RunRecord]] = {}
    for record in records:
        within.setdefault(str(record.where.get(SPLIT_AXIS)), []).append(record)
    axes = [axis for axis in list_axes(records) if axis not in _SEEDS_AND_NAMES]
    varied = [axis for axis in axes if any(is_varied(axis, runs) for runs in within.values())]
    return varied or ["algorithm"]


def _list_evidence(
    body: TableBody, measure: RunMeasure, profiles: Callable[[RunRecord], SplitProfile]
) -> list[SplitEvidence]:
    baseline = _find_baseline([row.label for row in body.rows])
    words = ComparisonWords(JudgeRules(), against=baseline)
    families = {one.column: one for one in compare_rows(body, measure, words, None)}
    known = []
    for place, where in enumerate(body.columns):
        split = str(where[SPLIT_AXIS])
        entries = {row.label: row.entries[place] for row in body.rows}
        means = {}
        for label, entry in entries.items():
            mean = None if entry is None else entry.values[measure.title].mean
            if mean is not None:
                means[label] = mean
        done = [one for entry in entries.values() if entry is not None for one in entry.records]
        done = [record for record in done if record.folder is not None]
        if baseline in means and len(means) > 1 and split in families:
            known.append(
                SplitEvidence(
                    split=split,
                    dataset=str(done[0].where.get("dataset", "")),
                    profile=profiles(done[0]),
                    means=means,
                    comparisons=families[split].comparisons,
                )
            )
    if not known:
        raise UsageError(
            f"no split of the study has a whole row of {baseline} and of another algorithm, so "
            "there is nothing to answer from; fltrain table STUDY says what is missing"
        )
    return known


def _find_baseline(labels: Sequence[str]) -> str:
    rows = [label for label in labels if label.partition(" ")[0] == BASELINE]
    if len(rows) != 1:
        raise UsageError(
            f"the study has {len(rows)} rows of {BASELINE} ({', '.join(rows) or 'none'}); advice "
            "is what beats it, so one row of it is needed"
        )
    return rows[0]


def _find_nearest(profile: SplitProfile, known: Sequence[SplitEvidence]) -> SplitEvidence:
    """Return the split with the same kinds of skew; of several of the same data, as much."""

    def count_distance(one: SplitEvidence) -> tuple[int, bool, float]:
        other = one.profile
        unlike = int(profile.has_feature_skew != other.has_feature_skew)
        unlike += int(profile.has_label_skew != other.has_label_skew)
        unlike += int(profile.has_quantity_skew != other.has_quantity_skew)
        off = abs(profile.hellinger - other.hellinger)
        off += abs(profile.gini - other.gini)
        return unlike, other.dataset != profile.dataset, off

    return min(known, key=count_distance)


def _choose_tested(one: SplitEvidence) -> str:
    return one.claimed[0] if one.claimed else one.baseline


def _explain(one: SplitEvidence) -> str:
    told = [found for found in one.comparisons if found.better in one.claimed]
    if not told:
        return f"nothing is claimed to beat {one.baseline} on {one.split}{_tell_refusal(one)}"
    best = next(found for found in told if found.better == one.claimed[0])
    assert best.statistics is not None
    assert best.p_holm is not None
    n = best.statistics.n
    return (
        f"{best.better} is better than {one.baseline} on {one.split}: p Holm {best.p_holm:.4f} of "
        f"{n} pairs"
    )


def _tell_refusal(one: SplitEvidence) -> str:
    """Say why no claim could have come of the pairs; "" where one could."""
    against = [found for found in one.comparisons if one.baseline in (found.first, found.second)]
    refused = [found for found in against if found.verdict == "refused"]
    if not refused or len(refused) < len(against):
        return ""
    return f", and none could be: {refused[0].reason}"


def _judge_rules(
    known: Sequence[SplitEvidence], tree: Callable[[SplitProfile], str], *, by_dataset: bool
) -> list[RuleRegret]:
    """Return the regret of each rule on splits of which it has seen nothing; [] where all are."""
    chosen: dict[str, dict[str, str]] = {}
    regrets: dict[str, list[float]] = {}
    for one in known:
        if by_dataset:
            rest = [other for other in known if other.dataset != one.dataset]
        else:
            rest = [other for other in known if other.split != one.split]
        if not rest:
            continue
        for rule, row in _list_choices(one, rest, tree).items():
            chosen.setdefault(rule, {})[one.split] = row
            best = max(one.means.values())
            regrets.setdefault(rule, []).append(best - one.means[row])
    return [
        RuleRegret(rule, fmean(regrets[rule]), max(regrets[rule]), rows)
        for rule, rows in chosen.items()
    ]


def _list_choices(
    one: SplitEvidence, rest: Sequence[SplitEvidence], tree: Callable[[SplitProfile], str]
) -> dict[str, str]:
    """Return what each rule chooses for a split, which has no say in it."""
    tested = _choose_tested(_find_nearest(one.profile, rest))
    gains = {
        row: fmean(other.means[row] - other.means[other.baseline] for other in rest)
        for row in one.means
        if all(row in other.means for other in rest)
    }
    of_paper = [row for row in one.means if row.partition(" ")[0] == tree(one.profile)]
    return {
        "claimed where skew is nearest": tested if tested in one.means else one.baseline,
        "largest mean gain elsewhere": max(gains, key=lambda row: gains[row]),
        "the paper's tree": of_paper[0] if of_paper else one.baseline,
        "always FedAvg": one.baseline,
    }
