"""What commands say about a split: a summary, tables of the measures and of the parties, JSON."""

from typing import Any

from ..program import table

WIDE = 100  # columns of a terminal; a table of counts that would not fit says less instead
INTERVAL = "95 % interval"


def summary(split: Any) -> str:
    from niidpart.plot import compose_title

    sizes = split.train.sizes
    moved = _moved(split)
    lines = [
        compose_title(split),
        f"digest {split.digest}",
        f"data   {split.source.name}: {split.source.n} examples of {len(split.source.class_names)} classes; global test set {split.source.n_test}",
        f"train  {split.train.n} examples; a party has {sizes.min()} to {sizes.max()}",
    ]
    lines += [
        f"{name:6} {part.n} examples, at the parties"
        for name, part in split.parts.items()
        if name != "train" and part.n
    ]
    if not split.source.n_test and not split.test.n:
        lines.append("test   none; training needs one: --test 0.2 gives each party its own")
    if moved:
        lines.append(
            f"moved  {moved} examples to parties that had fewer than min_size {split.recipe.params.get('min_size')}"
        )
    if split.n_unheld:
        lines.append(f"nobody holds {split.n_unheld} examples")
    return "\n".join(lines)


def _moved(split: Any) -> int:
    """Examples that went to parties that had fewer than min_size."""
    return len(split.draws["moved"]) if "moved" in split.draws else 0


def features(found: Any) -> str:
    """Distance of the features, and what it is where they are dealt at random."""
    what = (
        "energy distance"
        if found.measure == "energy"
        else f"squared MMD, Gaussian kernel of bandwidth {found.bandwidth:.3g}"
    )
    where = "all features" if found.pca is None else f"{found.pca} principal components"
    left_out = f"; {found.left_out} with fewer than 2 examples left out" if found.left_out else ""
    return "\n".join(
        [
            f"features: {what} on {where}, {found.n_examples} examples of {len(found.parties)} parties{left_out}",
            f"  to the rest {found.to_rest:.4g} (scaled {found.value:.4f}), pairwise {found.pairwise:.4g} (scaled {found.value_pairwise:.4f})",
            f"  dealt at random {found.iid:.4g}, in 95 % of deals below {found.iid_high:.4g}; p = {found.p_value:.2g} of {found.permutations} deals",
        ]
    )


def measures(skew: Any) -> str:
    """MAP beta in two lines, then a row for each measure."""
    low, middle, high = skew.beta_range
    lines = [
        f"MAP beta {skew.map_beta_overall:.4g} over all parties; of one party {low:.3g} to {high:.3g}, median {middle:.3g}"
    ]
    if skew.n_empty:
        lines.append(
            f"{skew.n_empty} parties without training examples are left out, but for the sizes"
        )
    rows = []
    for m in skew.measures:
        interval = "" if m.low is None else f"{m.low:.3f} .. {m.high:.3f}"
        rows.append(
            [
                m.name,
                m.form,
                f"{m.value:.3f}",
                f"{m.corrected:.3f}",
                interval,
                f"{m.iid:.3f}",
                f"{m.raw:.4g}",
            ]
        )
    if not rows:
        return "\n".join(
            [*lines, "no party holds a training example, so there is nothing to measure"]
        )
    lines += [
        "",
        table(
            [
                "skew, 0 IID to 1 one class each",
                "",
                "value",
                "corrected",
                INTERVAL,
                "IID deal",
                "unscaled",
            ],
            rows,
        ),
    ]
    lines.append("emd: of classes in the order of their ids; hellinger: squared")
    if any(m.sampled for m in skew.measures):
        lines.append(
            f"pairwise over {max(m.n for m in skew.measures if m.sampled)} pairs drawn at random"
        )
    return "\n".join(lines)


def parties(split: Any, shown: int) -> str:
    """Sizes, classes, beta and columns of each party; the counts themselves where they fit."""
    shown = min(shown, split.n_parties)
    counts = _table(split, shown, split.train.counts.shape[1] <= 12)
    if max(map(len, counts.splitlines())) > WIDE:
        counts = _table(split, shown, False)
    return counts + (
        f"\n... and {split.n_parties - shown} parties more (--all)"
        if shown < split.n_parties
        else ""
    )


def _table(split: Any, shown: int, every_class: bool) -> str:
    import numpy as np

    from niidpart.heterogeneity.measures import bits

    counts, names = split.train.counts[:shown], split.source.class_names
    totals = counts.sum(axis=1)
    effective = np.exp2(bits(counts / np.maximum(totals, 1)[:, None]))
    extra = [name for name in ("val", "test") if split.parts[name].n]
    columns = {name: column for name, column in split.columns.items() if not name.endswith("_seed")}
    header = [
        "party",
        "train",
        *extra,
        "beta",
        "classes",
        "effective",
        *(names if every_class else ["largest class"]),
        *columns,
    ]
    rows = []
    for p in range(shown):
        top = int(counts[p].argmax())
        last = (
            counts[p].tolist()
            if every_class
            else [
                f"{100 * counts[p, top] / totals[p]:.0f}% {names[top][:24]}" if totals[p] else "-"
            ]
        )
        beta, eff = (
            (f"{split.skew.map_beta[p]:.3g}", f"{effective[p]:.1f}") if totals[p] else ("-", "-")
        )
        others = (split.parts[name].sizes[p] for name in extra)
        rows.append(
            [
                p,
                totals[p],
                *others,
                beta,
                int((counts[p] > 0).sum()),
                eff,
                *last,
                *(_value(column[p]) for column in columns.values()),
            ]
        )
    return table(header, rows)


def _value(value: Any) -> str:
    """One value of a column. Text came from a file, so that nothing in it may steer the terminal."""
    if isinstance(value, bytes):
        text = value.decode("ascii", "backslashreplace")
        return "".join(c if c.isprintable() else "?" for c in text)
    return f"{value:.4g}" if hasattr(value, "dtype") and value.dtype.kind == "f" else str(value)


def as_json(split: Any) -> dict[str, Any]:
    return {
        "digest": split.digest,
        "recipe": split.recipe.to_json(),
        "source": split.source.to_json(),
        "unheld": split.n_unheld,
        "moved": _moved(split),
        "parts": {
            name: {"n": part.n, "sizes": part.sizes.tolist(), "counts": part.counts.tolist()}
            for name, part in split.parts.items()
            if part.n
        },
        "columns": {
            name: [_value(v) for v in column.tolist()]
            if column.dtype.kind == "S"
            else _finite(column)
            for name, column in split.columns.items()
        },
        "skew": split.skew.to_json() | {"map_beta_of_parties": split.skew.map_beta.tolist()},
    }


def _finite(column: Any) -> list[Any]:
    """JSON has no NaN and no infinity."""
    import math

    return [None if isinstance(v, float) and not math.isfinite(v) else v for v in column.tolist()]
