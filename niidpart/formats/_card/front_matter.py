"""The YAML part of a card, which the Hub and `datasets` read."""

import re
from collections.abc import Sequence
from typing import Any

from ...data.credits import Credit, find_credit
from ...features.arrow_table import FeatureKind
from ...plot import compose_title
from ...splits.recipe import JSON
from ...splits.split import FederatedSplit
from .tables import TableConfig

__all__ = ["build_front_matter", "dump_yaml"]

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")  # the Hub's words


def build_front_matter(split: FederatedSplit, configs: Sequence[TableConfig]) -> JSON:
    """Return the keys of the YAML part.

    Each table says the digest: a cache of `datasets` is then never taken for that of another split.
    """
    with_data = any(config.with_data for config in configs)
    front: JSON = {"pretty_name": compose_title(split)}
    if with_data:
        front |= _describe_licence(find_credit(split.source.name))
    front["tags"] = ["federated-learning", "non-iid", "niidpart"]
    if with_data:
        has_images = any("image" in config.kinds.values() for config in configs)
        front["task_categories"] = [
            "image-classification" if has_images else "tabular-classification"
        ]
    front["size_categories"] = [_name_size(max(_count_rows(config) for config in configs))]
    front["configs"] = [_locate_files(config, config is configs[-1]) for config in configs]
    front["dataset_info"] = [_describe_config(config, split) for config in configs]
    return front


def _describe_licence(credit: Credit | None) -> JSON:
    if credit is None:
        return {"license": "unknown"}
    if not credit.terms:
        return {"license": credit.licence}
    return {"license": credit.licence, "license_name": credit.terms}


def _count_rows(config: TableConfig) -> int:
    return sum(files.n for files in config.parts.values())


def _name_size(n: int) -> str:
    """Return the Hub's words for a number of rows."""
    upper = max(0, len(str(max(n, 1))) - 3)  # 4 digits: at least 1K
    if upper == 0:
        return "n<1K"
    if upper >= len(_SIZES):
        return "n>1T"
    return f"{_SIZES[upper - 1]}<n<{_SIZES[upper]}"


def _locate_files(config: TableConfig, is_default: bool) -> JSON:
    files = [
        {"split": part, "path": files.paths if len(files.paths) > 1 else files.paths[0]}
        for part, files in config.parts.items()
    ]
    located: JSON = {"config_name": config.name, "data_files": files}
    if is_default:
        located["default"] = True
    return located


def _describe_config(config: TableConfig, split: FederatedSplit) -> JSON:
    parts = [
        {"name": name, "num_bytes": files.size, "num_examples": files.n}
        for name, files in config.parts.items()
    ]
    features = [{"name": name} | _describe_kind(kind) for name, kind in config.kinds.items()]
    return {
        "config_name": config.name,
        "description": f"{compose_title(split)}; split digest {split.digest}",
        "features": features,
        "splits": parts,
        "download_size": sum(files.stored for files in config.parts.values()),
        "dataset_size": sum(files.size for files in config.parts.values()),
    }


def _describe_kind(kind: FeatureKind) -> JSON:
    """Return a kind as a card says it, which is not as a parquet file says it."""
    if isinstance(kind, list):
        inner = kind[0]
        return {"list": inner if isinstance(inner, str) else _describe_kind(inner)}
    if isinstance(kind, dict):
        names = {str(k): name for k, name in enumerate(kind["class_label"])}
        return {"dtype": {"class_label": {"names": names}}}
    return {"dtype": kind}


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_/-]*\Z")
# Words that some reader of YAML takes for something else than text.
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def dump_yaml(value: JSON) -> str:
    """Return block YAML; texts that are no plain word stand in double quotes."""
    import yaml

    class CardDumper(yaml.SafeDumper):  # type: ignore[misc]
        """Lists indented below their key, and each value written out where it stands."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent_text(dumper: Any, text: str) -> Any:
        is_plain = _PLAIN.match(text) and text.lower() not in _WORDS
        style = None if is_plain else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    CardDumper.add_representer(str, represent_text)
    text: str = yaml.dump(
        value, Dumper=CardDumper, sort_keys=False, allow_unicode=True, width=float("inf")
    )
    # What cannot be seen could make a name look like another one; only quoted texts can hold it.
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
