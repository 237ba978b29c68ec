"""The whole setting of a paper by name: one file a paper, which holds `PRESET`; the folder is the registry.

A preset is data: rows of (name, value, where it is said), each with the conditions under which it holds. Nothing here imports torch.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import niidpart
from niidpart.errors import UsageError
from niidpart.registry import did_you_mean, list_names

__all__ = [
    "Case",
    "Preset",
    "Resolved",
    "Row",
    "find",
    "grid",
    "model",
    "names",
    "option",
    "setting",
]

Kind = Literal["setting", "model", "option", "grid"]


class Case(NamedTuple):
    """What the rows of a preset may depend on. None: not known.

    source: the name of the data set. algorithm: a name; a user's own has no rows. transforms, strategy, parties: those of the split.
    own_test: whether the data set has a test set of its own. model: the one that was asked for beside the preset.
    """

    source: str | None = None
    algorithm: str | None = None
    transforms: tuple[str, ...] | None = None
    strategy: str | None = None
    parties: int | None = None
    own_test: bool | None = None
    model: str | None = None


@dataclass(frozen=True)
class Row:
    """One value of a preset, and who says so (`where`). when: fields of `Case`, each with the values for which the row holds."""

    kind: Kind
    name: str
    value: Any
    where: str
    when: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.when:
            if key not in Case._fields:
                raise UsageError(
                    f"{self.name} depends on {key!r}; {did_you_mean(key, list(Case._fields))}"
                )

    def holds(self, case: Case) -> bool | None:
        """None: the case does not say."""
        answers = [_among(getattr(case, key), wanted) for key, wanted in self.when.items()]
        return False if False in answers else None if None in answers else True

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "value": self.value,
            "source": self.where,
            "when": self.when,
        }


@dataclass(frozen=True)
class Resolved:
    """A preset in one case. settings: fields of `fltrain.Settings`; model: None if the preset leaves it to the data; options: of the algorithm;
    values: the same as rows, with where each is said; grids: what the paper tried instead; known: whether it is a data set of the paper."""

    settings: dict[str, Any]
    model: str | None
    options: dict[str, Any]
    values: tuple[Row, ...]
    grids: tuple[Row, ...]
    known: bool


@dataclass(frozen=True)
class Preset:
    """about: the paper, and what it is about. sources: its data sets. rows: the later one wins where two hold. notes: what the rows cannot say."""

    about: str
    sources: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def listing(self, case: Case) -> list[Row]:
        """The rows that hold in the case, and those that may, where it does not say enough; without those that a later one takes the place of."""
        out: list[Row] = []
        for row in self.rows:
            answer = row.holds(case)
            if answer:  # a grid stands beside the value, so it is of another kind
                out = [
                    r for r in out if (r.name, r.kind == "grid") != (row.name, row.kind == "grid")
                ]
            if answer is not False:
                out.append(row)
        return out

    def resolve(
        self,
        source: str,
        algorithm: str,
        *,
        transforms: Iterable[str] = (),
        strategy: str | None = None,
        parties: int | None = None,
        own_test: bool = True,
        model: str | None = None,
    ) -> Resolved:
        """The values for a data set and an algorithm, both by name. A row that depends on what is not given does not hold."""
        case = Case(source, algorithm, tuple(transforms), strategy, parties, own_test, model)
        rows = [row for row in self.listing(case) if row.holds(case)]

        def of(kind: Kind) -> dict[str, Any]:
            return {row.name: row.value for row in rows if row.kind == kind}

        values = tuple(row for row in rows if row.kind != "grid")
        grids = tuple(row for row in rows if row.kind == "grid")
        return Resolved(
            of("setting"),
            of("model").get("model"),
            of("option"),
            values,
            grids,
            source in self.sources,
        )

    def on(
        self, split: niidpart.FederatedSplit, algorithm: str, model: str | None = None
    ) -> Resolved:
        """The values for a split: its data set, transforms, strategy and number of parties."""
        recipe, source = split.recipe, split.source
        return self.resolve(
            source.name,
            algorithm,
            transforms=[transform.name for transform in recipe.transforms],
            strategy=recipe.strategy,
            parties=recipe.n_parties,
            own_test=source.n_test > 0,
            model=model,
        )


def setting(name: str, value: Any, where: str, **when: Any) -> Row:
    """A field of `fltrain.Settings`."""
    return Row("setting", name, value, where, _several(when))


def model(name: str, where: str, **when: Any) -> Row:
    return Row("model", "model", name, where, _several(when))


def option(algorithm: str, name: str, value: Any, where: str, **when: Any) -> Row:
    """An option of one algorithm."""
    return Row("option", name, value, where, _several({"algorithm": algorithm} | when))


def grid(name: str, values: tuple[Any, ...], where: str, **when: Any) -> Row:
    """What a paper tried: of a setting, or, with algorithm="...", of an option."""
    return Row("grid", name, values, where, _several(when))


def names() -> list[str]:
    """The files of this folder, sorted."""
    return list_names("fltrain.presets")


def find(name: str) -> Preset:
    """The preset of a name; ValueError with the nearest one where there is none."""
    if name not in names():
        raise UsageError(f"unknown preset {name!r}; {did_you_mean(name, names())}")
    preset: Preset = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").PRESET
    return preset


def _several(when: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {key: value if isinstance(value, tuple) else (value,) for key, value in when.items()}


def _among(value: Any, wanted: tuple[Any, ...]) -> bool | None:
    if value is None:
        return None
    return bool(set(value) & set(wanted)) if isinstance(value, tuple) else value in wanted
