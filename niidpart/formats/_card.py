"""The card of a published split: what a reader of the repository sees, and what `datasets` reads to know which file is what."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.credits import Credit, find_credit
from ..plot import compose_title
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit

__all__ = ["Config", "Files", "card", "config_name", "is_card", "tag_name", "yaml"]

SHOWN = 20  # parties in the table


@dataclass
class Files:
    """The parquet files of one part. size: of the rows in memory; stored: on the disk; both in bytes."""

    paths: list[str] = field(default_factory=list)
    n: int = 0
    size: int = 0
    stored: int = 0

    def add(self, path: str, n: int, size: int, stored: int) -> None:
        self.paths.append(path)
        self.n, self.size, self.stored = self.n + n, self.size + size, self.stored + stored


@dataclass
class Config:
    """One table of the repository. features: (name, kind), where a kind is a type's name, "image", a list [kind], or {"class_label": names}."""

    name: str
    with_data: bool
    features: list[tuple[str, Any]]
    parts: dict[str, Files]


def config_name(split: FederatedSplit) -> str:
    """The recipe as a name: `digits-dir-beta-0.5-10-parties-seed-0`; at most 80 characters, the last 8 of a longer one from the digest."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", compose_title(replace(split, root=""))).strip("-.")
    return name if len(name) <= 80 else f"{name[:71].rstrip('-.')}-{split.digest[:8]}"


def tag_name(split: FederatedSplit, include_data: bool = False) -> str:
    """The tag that a published split gets: `split-` and the first 16 digits of its digest."""
    return f"split-{split.digest[:16]}{'-data' if include_data else ''}"


def card(
    split: FederatedSplit,
    configs: Sequence[Config],
    *,
    repo: str = "",
    picture: str = "",
    split_file: str = "split.h5",
) -> str:
    """README.md of a repository that holds `split_file` and the tables `configs`. repo: USER/NAME, "" for a folder; picture: its path, or ""."""
    blocks = [
        f"---\n{yaml(_head(split, configs))}---",
        f"# {compose_title(split)}",
        f"A federated split: which of {split.n_parties} parties holds which example of the data set `{split.source.name}`. `{split_file}` is the "
        "split itself, with its recipe, its measures and its digest; the parquet files say the same row by row.",
        f"Digest `{split.digest}`",
        f"![training examples of each class at each party]({picture})" if picture else "",
        _tables(split, configs),
        _recipe(split),
        _skew(split),
        _parties(split),
        _data(split, configs),
        _verify(split, repo, configs),
        _load(split, configs, repo),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def is_card(text: str) -> bool:
    """Whether `card` wrote it; somebody may have added to it since."""
    return (
        text.startswith("---\n")
        and "\n- niidpart\n" in re.sub(r"(?m)^ +", "", text)
        and bool(re.search(r"(?m)^Digest `[0-9a-f]{64}`$", text))
    )


def _head(split: FederatedSplit, configs: Sequence[Config]) -> JSON:
    """The YAML part. Each table says the digest: a cache of `datasets` is then never taken for that of another split."""
    credit = find_credit(split.source.name)
    with_data = any(c.with_data for c in configs)
    head: JSON = {"pretty_name": compose_title(split)}
    if with_data:
        head |= _licence(credit)
    head["tags"] = ["federated-learning", "non-iid", "niidpart"]
    if with_data:
        image = any(kind == "image" for c in configs for _, kind in c.features)
        head["task_categories"] = ["image-classification" if image else "tabular-classification"]
    head["size_categories"] = [_size(max(sum(f.n for f in c.parts.values()) for c in configs))]
    head["configs"] = [_where(c, configs) for c in configs]
    head["dataset_info"] = [_info(c, split) for c in configs]
    return head


def _licence(credit: Credit | None) -> JSON:
    if credit is None:
        return {"license": "unknown"}
    return {"license": credit.licence} | ({"license_name": credit.terms} if credit.terms else {})


def _size(n: int) -> str:
    """The Hub's words for a number of rows."""
    bounds = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"]
    i = max(0, len(str(max(n, 1))) - 3)
    return "n<1K" if i == 0 else "n>1T" if i >= len(bounds) else f"{bounds[i - 1]}<n<{bounds[i]}"


def _where(config: Config, configs: Sequence[Config]) -> JSON:
    files = [
        {"split": part, "path": f.paths if len(f.paths) > 1 else f.paths[0]}
        for part, f in config.parts.items()
    ]
    default = (
        {"default": True} if config is configs[-1] else {}
    )  # the examples, where they are there
    return {"config_name": config.name, "data_files": files} | default


def _info(config: Config, split: FederatedSplit) -> JSON:
    parts = [
        {"name": name, "num_bytes": f.size, "num_examples": f.n} for name, f in config.parts.items()
    ]
    return {
        "config_name": config.name,
        "description": f"{compose_title(split)}; split digest {split.digest}",
        "features": [{"name": name} | _typed(kind) for name, kind in config.features],
        "splits": parts,
        "download_size": sum(f.stored for f in config.parts.values()),
        "dataset_size": sum(f.size for f in config.parts.values()),
    }


def _typed(kind: Any) -> JSON:
    if isinstance(kind, list):
        inner = kind[0]
        return {"list": inner if isinstance(inner, str) else _typed(inner)}
    if isinstance(kind, dict):
        return {
            "dtype": {
                "class_label": {
                    "names": {str(k): name for k, name in enumerate(kind["class_label"])}
                }
            }
        }
    return {"dtype": kind}


def yaml(value: Any, indent: int = 0) -> str:
    """Dicts, lists, texts, numbers and truth as block YAML; texts that are no plain word stand as JSON has them, which YAML takes."""
    return "".join(_lines(value, " " * indent))


def _lines(value: Any, pad: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                yield f"{pad}{_scalar(key)}:\n"
                yield from _lines(inner, pad + "  ")
            else:
                yield f"{pad}{_scalar(key)}: {_scalar(inner)}\n"
        return
    for inner in value:
        if isinstance(inner, dict | list) and inner:
            block = "".join(_lines(inner, pad + "  "))
            yield f"{pad}- {block[len(pad) + 2 :]}"
        else:
            yield f"{pad}- {_scalar(inner)}\n"


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_/-]*\Z")
_WORDS = {
    "y",
    "n",
    "yes",
    "no",
    "on",
    "off",
    "true",
    "false",
    "null",
}  # YAML reads them as something else


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 1 << 16 else f"\\U{ord(c):08x}"
        for c in text
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def _tables(split: FederatedSplit, configs: Sequence[Config]) -> str:
    rows = []
    for c in configs:
        about = (
            "label and features of each example"
            if c.with_data
            else "rows of the data set, without the examples"
        )
        rows.append(
            [
                f"`{c.name}`",
                ", ".join(f"{name} ({f.n})" for name, f in c.parts.items()),
                ", ".join(f"`{n}`" for n, _ in c.features),
                about,
            ]
        )
    lines = ["## Tables", _table(["config", "splits (rows)", "columns", "what"], rows)]
    lines.append(
        "`party` is 0 to "
        + str(split.n_parties - 1)
        + ", `row` counts the examples of the data set from 0, as niidpart reads it."
    )
    if any("global_test" in c.parts for c in configs):
        lines.append(
            "`global_test` is the data set's own test set: no party holds it (`party` is -1), and `row` counts its rows."
        )
    if empty := np.flatnonzero(split.train.sizes == 0).tolist():
        some = ", ".join(map(str, empty[:10])) + (", ..." if len(empty) > 10 else "")
        lines.append(
            f"**{len(empty)} parties hold no training example** ({some}): they have no rows in `train`, so a partitioner that numbers the "
            "parties it sees numbers those after them anew."
        )
    if split.overlaps:
        lines.append("Parties share examples: such a row stands once for each party that holds it.")
    if split.recipe.transforms and len(configs) > 1:
        fresh = any(t.params.get("fresh") for t in split.recipe.transforms)
        said = "Features are as the party sees them, floats with the recipe's fixed transforms"
        lines.append(
            said + ("; noise that is drawn afresh in training is not in them." if fresh else ".")
        )
    return "\n\n".join(lines)


def _recipe(split: FederatedSplit) -> str:
    return f"## Recipe\n\n```json\n{json.dumps(split.recipe.to_json(), indent=2)}\n```"


def _skew(split: FederatedSplit) -> str:
    skew = split.skew
    low, middle, high = skew.beta_range
    rows = []
    for m in skew.measures:
        interval = "" if m.low is None else f"{m.low:.3f} .. {m.high:.3f}"
        rows.append(
            [m.name, m.form, f"{m.value:.3f}", f"{m.corrected:.3f}", interval, f"{m.iid:.3f}"]
        )
    beta = f"MAP beta {skew.map_beta_overall:.4g} over all parties; of one party {low:.3g} to {high:.3g}, median {middle:.3g}."
    header = ["measure", "form", "value", "corrected", "95 % interval", "IID deal"]
    return f"## Skew\n\n{beta} The measures are 0 for an IID split and 1 for one class a party.\n\n{_table(header, rows)}"


def _parties(split: FederatedSplit) -> str:
    parts = [name for name, part in split.parts.items() if part.n]
    rows = [
        [p, *(split.parts[name].sizes[p] for name in parts), int((split.train.counts[p] > 0).sum())]
        for p in range(min(SHOWN, split.n_parties))
    ]
    more = f"\n\n... and {split.n_parties - SHOWN} parties more." if split.n_parties > SHOWN else ""
    return f"## Parties\n\n{_table(['party', *parts, 'classes in train'], rows)}{more}"


def _data(split: FederatedSplit, configs: Sequence[Config]) -> str:
    source, credit = split.source, find_credit(split.source.name)
    lines = [
        f"- `{source.name}`: {source.n} examples of {len(source.class_names)} classes, {source.n_test} in its test set",
        f"- options: `{json.dumps(source.params)}`" if source.params else "",
        f"- revision: `{json.dumps(source.revision)}`" if source.revision else "",
        f"- sha256 of the labels `{source.labels_sha256}`"
        + (f", of the features `{source.content_sha256}`" if source.content_sha256 else ""),
    ]
    if credit is not None:
        said = credit.terms or {"unknown": "none stated by its authors"}.get(
            credit.licence, credit.licence
        )
        lines += [f"- licence of the data: {said}", f"- citation: {credit.citation}"]
    else:
        lines.append(
            "- licence and citation of the data: not known to niidpart; whoever published this adds them here"
        )
    held = (
        "This repository holds the examples; their licence is that of the data."
        if len(configs) > 1
        else ""
    )
    none = "This repository holds numbers of rows and counts, and no example of the data."
    return "\n".join(["## Data", "", *filter(None, lines), "", held or none])


def _verify(split: FederatedSplit, repo: str, configs: Sequence[Config]) -> str:
    pull = f"niidpart pull {repo}@{tag_name(split, len(configs) > 1)} -o split.h5\n" if repo else ""
    needs = "" if split.source.name in ("digits", "fcube") else " --data-root DIR"
    return (
        "## Verify\n\n```sh\npip install 'niidpart[hub]'\n"
        f"{pull}niidpart verify split.h5{needs}\n```\n\nThis derives the split again from its recipe and the data, and compares every row."
    )


def _load(split: FederatedSplit, configs: Sequence[Config], repo: str) -> str:
    where, name, tag = repo or ".", configs[-1].name, tag_name(split, len(configs) > 1)
    pinned = f', revision="{tag}"' if repo else ""
    datasets = f'from datasets import load_dataset\n\ntable = load_dataset("{where}", "{name}", split="train"{pinned})'
    flower = (
        "from flwr_datasets import FederatedDataset\nfrom flwr_datasets.partitioner import NaturalIdPartitioner\n\n"
        f'parties = FederatedDataset(dataset="{where}", subset="{name}"{pinned},\n'
        '                           partitioners={"train": NaturalIdPartitioner(partition_by="party")})\nfirst = parties.load_partition(0)'
    )
    root = "" if split.source.name in ("digits", "fcube") else " --data-root DIR"
    train = f"fltrain run hub:{repo}@{tag}{root}" if repo else f"fltrain run split.h5{root}"
    return (
        f'## Load\n\nWith `datasets`:\n\n```python\n{datasets}\nparty_3 = table.filter(lambda party: party == 3, input_columns="party")\n```\n\n'
        f"With Flower:\n\n```python\n{flower}\n```\n\nWith `fltrain`:\n\n```sh\n{train}\n```"
    )
