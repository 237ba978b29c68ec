"""Parties that hold their proportions, rounded to whole examples: what these may have been.

Nothing was drawn, so there is no chance to be taken out of a value. It is off by the rounding:
shares lie about their counts by the law of `rounding_errors.py`, with the beta that suits the
counts; of counts that were rounded several times the errors add up. Small parties that were filled
up hold more than their share: so many of their examples, of classes that their givers hold, go
back.
"""

from functools import partial
from typing import NamedTuple, Self

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream, stream
from .chance import StandIns
from .estimates import NORMAL_REACH, Estimate, find_ends
from .likelihoods import slope_of_all
from .means import MeasureKey, PairMeans, scale_mean
from .moves import MovedCounts
from .roots import HIGHEST, LOWEST, estimate_log_error, find_roots
from .rounding_errors import draw_errors
from .tables import PartyCounts
from .terms import BOUND, PooledTerms
from .truths import PossibleParties, evaluate_truths

_DOUBT = 0.25  # of what moved examples change
_ROUGH = 5  # roundings of rough proportions, which are then off by sqrt(5 / 12), two thirds


class RoundingEvidence(NamedTuple):
    """All that was computed of a table whose parties hold their proportions.

    point: the means. pairs: the pairwise ones, with the errors of those that were drawn. truths:
    values of shares that were rounded to these counts, under two suppositions. Either a class that
    a party lacks had a small share of it, and what parties were filled up with is no part of the
    shares, or it had none, and it is. in_one_direction: values where all parties were rounded
    towards their largest class, or away from it; {} for counts that were rounded once. unmoved:
    values of the second supposition where what was moved went back; {} where nothing was.
    """

    table: PartyCounts
    point: dict[MeasureKey, float]
    pairs: PairMeans
    truths: tuple[dict[MeasureKey, Floats], dict[MeasureKey, Floats]]
    in_one_direction: dict[MeasureKey, Floats]
    unmoved: dict[MeasureKey, Floats]

    @classmethod
    def collect(
        cls,
        table: PartyCounts,
        point: dict[MeasureKey, float],
        pairs: PairMeans,
        moves: Ints,
        *,
        is_rough: bool,
    ) -> Self:
        """Draw what the shares may have been, from streams with fixed names.

        moves: [M, 2] from whom to whom each example went that was moved to meet the minimum size.
        is_rough: whether counts may have been rounded several times.
        """
        rng = stream(0, "heterogeneity", "rounding")
        rounded = RoundedCounts.of(table, moves)
        n_roundings = _ROUGH if is_rough else 1
        some = rounded.draw_some(n_roundings, rng.child("some"))
        none = rounded.draw_none(n_roundings, rng.child("none"))
        unmoved = None
        if len(moves):
            unmoved = rounded.undo_moves(n_roundings, rng.child("unmoved"))

        def evaluate(possible: PossibleParties) -> dict[MeasureKey, Floats]:
            return evaluate_truths(table, point, rounded.who, possible, rng.child("pairs"))

        return cls(
            table=table,
            point=point,
            pairs=pairs,
            truths=(evaluate(some), evaluate(none)),
            in_one_direction=evaluate(rounded.lean()) if is_rough else {},
            unmoved=evaluate(unmoved) if unmoved is not None else {},
        )

    def estimate(self, key: MeasureKey) -> Estimate:
        """Return the value as it is, with the interval of what was rounded.

        It holds the truths under both suppositions, and as much about the value: they lie below it
        where rounding has made the parties less alike, which it need not have done.
        """
        value = scale_mean(key, self.point[key], self.table.g, self.table.w)
        if len(self.table.sizes) == 1 or np.count_nonzero(self.table.g) == 1:
            return Estimate(value, value, value)  # one party, or one class: nothing can differ
        ends = [value]
        for truths in self.truths:
            if key in truths:
                low, high = find_ends(truths[key])
                shift = value - float(truths[key].mean())
                ends += [low, high, low + shift, high + shift]
        if key in self.in_one_direction:
            ends += self.in_one_direction[key].tolist()
        if key in self.unmoved:
            low, high = find_ends(self.unmoved[key])
            # What goes back is a guess: it may have moved the value by more, or by less.
            margin = _DOUBT * abs(float(self.unmoved[key].mean()) - value)
            least, most = min([low, *ends]), max([high, *ends])
            ends += [least - margin, most + margin]
        sampling = self._reach_of_pairs(key)
        low = value - float(np.hypot(value - min(ends), sampling))
        high = value + float(np.hypot(max(ends) - value, sampling))
        return Estimate(value, low, max(value, min(high, 1.0)))

    def _reach_of_pairs(self, key: MeasureKey) -> float:
        """Return how far the error of pairs that were drawn reaches; 0 where all were looked at."""
        if key not in self.pairs.errors:
            return 0.0
        error = self.pairs.errors[key]
        return NORMAL_REACH * scale_mean(key, error, self.table.g, self.table.w)


class RoundedCounts(NamedTuple):
    """The counts of the parties that stand for all, and the law of the shares behind them.

    K: classes. held: those that anybody holds, [k]. counts: [S, k]. moved: the same counts, and
    what was moved among them. g: [k]. beta, error: of `fit_shape`.
    """

    who: StandIns
    K: int
    held: Ints
    counts: Ints
    moved: MovedCounts
    g: Floats
    beta: float
    error: float

    @classmethod
    def of(cls, table: PartyCounts, moves: Ints) -> Self:
        who = StandIns.of(table)
        held = np.flatnonzero(table.g)
        g = table.g[held]
        of_held = table._replace(counts=table.counts[:, held])
        moved = MovedCounts.of(of_held, who.parties, moves)
        counts = moved.counts
        # What was filled up is not what was drawn, and says nothing of how that is spread.
        is_drawn = moved.received == 0
        drawn = counts[is_drawn] if is_drawn.any() else counts
        beta, error = fit_shape(drawn, g)
        K = table.counts.shape[1]
        return cls(
            who=who,
            K=K,
            held=held,
            counts=counts,
            moved=moved,
            g=g,
            beta=beta,
            error=error,
        )

    def draw_some(self, n_roundings: int, rng: Stream) -> PossibleParties:
        """Return parties that had small shares of what they lack, and nothing that was moved."""
        R = self.who.n_replicates
        before = self.moved.undo(R, rng.child("moves"))
        shares = self._draw_shares(before, n_roundings, rng)
        return self._normalise(shares)

    def draw_none(self, n_roundings: int, rng: Stream) -> PossibleParties:
        """Return parties that had no share of what they lack, and all that they hold."""
        held = self.counts.astype(np.float64)
        before = np.repeat(held[None], self.who.n_replicates, axis=0)
        return self._draw_of_held(before, n_roundings, rng)

    def undo_moves(self, n_roundings: int, rng: Stream) -> PossibleParties:
        """Return parties without what was moved, which had no share of what they lack then."""
        R = self.who.n_replicates
        before = self.moved.undo(R, rng.child("moves"))
        return self._draw_of_held(before, n_roundings, rng)

    def lean(self) -> PossibleParties:
        """Return all parties with a whole example more of their largest class, and with one less.

        Errors of rough proportions go together, and do not cancel out however many the parties are:
        those of parties that share out what is left of a class, or whose counts were rounded down.
        """
        largest = self.counts.argmax(axis=1)[:, None]
        n_largest = np.take_along_axis(self.counts, largest, axis=1).astype(np.float64)
        others = self.counts.sum(axis=1, keepdims=True) - n_largest
        leaning = []
        for change in (1.0, -1.0):
            moved = np.where(others > 1, change, 0.0)
            shares = self.counts * (1 - moved / np.maximum(others, 1))
            np.put_along_axis(shares, largest, n_largest + moved, axis=1)
            leaning.append(shares)
        return self._normalise(np.stack(leaning))

    def _draw_of_held(self, before: Floats, n_roundings: int, rng: Stream) -> PossibleParties:
        """Return parties that had no share of the classes that they lack in `before`."""
        shares = self._draw_shares(before, n_roundings, rng)
        shares[before == 0] = 0.0
        return self._normalise(shares)

    def _draw_shares(self, before: Floats, n_roundings: int, rng: Stream) -> Floats:
        """Return [R, S, k]: shares, in examples, that are rounded to the counts `before`."""
        # How the shares are spread is not known either: log(beta) is about normal.
        noise = self.error * rng.child("beta").normal(len(before))
        betas = np.clip(self.beta * np.exp(noise), LOWEST, HIGHEST)
        mean = before.sum(axis=-1, keepdims=True) * self.g
        words = rng.child("shares")
        shares = before
        for _ in range(n_roundings):
            u = words.uniform(before.size).reshape(before.shape)
            shares = shares + draw_errors(u, before, mean, betas[:, None, None])
        return np.maximum(shares, 0.0)

    def _normalise(self, shares: Floats) -> PossibleParties:
        """Return parties of shares [R, S, k], in examples."""
        possible = PossibleParties.of(shares, self.counts)
        p = np.zeros((*possible.w.shape, self.K))
        p[:, :, self.held] = possible.p
        return possible._replace(p=p)


def fit_shape(counts: Ints, g: Floats) -> tuple[float, float]:
    """Return the beta that suits counts [S, K] which are rounded shares, and its error.

    The shares of class k are in proportion to g_k, and apart from that of one law: as `dir` divides
    each class, whatever its size. beta is within 1e-6 to 1e6. The error is that of log(beta), at
    most 1.
    """
    S, K = counts.shape
    relative = np.where(counts > 0, counts, BOUND) / g
    wholes = relative.sum(axis=1)
    log_x = np.log(relative).sum() - K * np.log(wholes).sum()
    nothing = np.zeros(0)
    terms = PooledTerms(
        K=K,
        values=nothing,
        times=nothing,
        sizes=nothing,
        size_times=nothing,
        n_rows=float(S),
        log_x=float(log_x),
        n_lacking=float(np.count_nonzero(counts == 0)),
    )
    slope = partial(slope_of_all, terms=terms, likelihood="rounded", kappa=0)
    beta = float(find_roots(slope, np.array([1.0]))[0])
    return beta, estimate_log_error(slope, beta)
