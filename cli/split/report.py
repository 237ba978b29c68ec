"""What commands say about a split: a summary, a table of the parties, JSON."""

from typing import Any

from ..program import table


def summary(split: Any) -> str:
    from niidpart.plot import title

    sizes = split.train.sizes
    moved = len(split.draws["moved"]) if "moved" in split.draws else 0
    lines = [
        title(split),
        f"digest {split.digest}",
        f"data   {split.source.name}: {split.source.n} examples of {len(split.source.class_names)} classes; global test set {split.source.n_test}",
        f"train  {split.train.n} examples; a party has {sizes.min()} to {sizes.max()}",
    ]
    lines += [f"{name:6} {part.n} examples, at the parties" for name, part in split.parts.items() if name != "train" and part.n]
    if moved:
        lines.append(f"moved  {moved} examples to parties that had fewer than min_size {split.recipe.params.get('min_size')}")
    if split.n_unheld:
        lines.append(f"nobody holds {split.n_unheld} examples")
    return "\n".join(lines)


def parties(split: Any, shown: int) -> str:
    """Sizes and classes of each party; the counts themselves where the classes are few."""
    counts = split.train.counts
    few = counts.shape[1] <= 12
    extra = [name for name in ("val", "test") if split.parts[name].n]
    header = ["party", "train", *extra, "classes", *(split.source.class_names if few else ["largest class"])]
    rows = []
    for p in range(min(shown, split.n_parties)):
        last = counts[p].tolist() if few else [f"{100 * counts[p].max() / max(counts[p].sum(), 1):.0f}%"]
        rows.append([p, split.train.sizes[p], *(split.parts[name].sizes[p] for name in extra), int((counts[p] > 0).sum()), *last])
    more = f"\n... and {split.n_parties - shown} parties more (--all)" if shown < split.n_parties else ""
    return table(header, rows) + more


def as_json(split: Any) -> dict[str, Any]:
    return {
        "digest": split.digest,
        "recipe": split.recipe.to_json(),
        "source": split.source.to_json(),
        "unheld": split.n_unheld,
        "parts": {name: {"n": part.n, "sizes": part.sizes.tolist(), "counts": part.counts.tolist()} for name, part in split.parts.items() if part.n},
        "columns": {name: column.tolist() for name, column in split.columns.items()},
    }
