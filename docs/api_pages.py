"""The API pages of the site, from what the packages export and from the folders of the registries.

`write(folder)` is called by conf.py. Nothing is listed here but the rooms: a new strategy or
algorithm has its entry by being there.
"""

import importlib
import inspect
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import fltrain
import niidpart
from fltrain.algorithms import ALGORITHMS
from fltrain.models import MODELS
from niidpart.data import SOURCES
from niidpart.formats import FORMATS
from niidpart.plot import PICTURES
from niidpart.registry import Registry
from niidpart.strategies import STRATEGIES
from niidpart.transforms import TRANSFORMS

PACKAGES = {
    "niidpart": (niidpart, "Splits: made, measured, checked, written and read."),
    "fltrain": (fltrain, "Training: runs, sweeps and what they return."),
}
MODULES = {
    "niidpart.arithmetic.deal": "What strategies deal with: counts, shares, minimum sizes.",
    "niidpart.arithmetic.exact": "Functions of floats with the same bits on every machine.",
    "niidpart.arithmetic.rng": "Named streams of random words.",
    "fltrain.interface": "What an algorithm is, and what its functions read and return.",
    "fltrain.directions.affine": "Corrections that are affine in the weights, declared as data.",
    "fltrain.directions.class_logits": "Losses of logits that are changed class by class, declared as data.",
    "fltrain.directions.loss_terms": "Terms of the loss that compare a model with fixed ones, declared as data.",
    "fltrain.directions.local_rule": "What stages learn by on their own, declared as data.",
    "fltrain.directions.envelope": "Steps along the Moreau envelope of the loss, declared as data.",
    "fltrain.directions.ascent": "Gradients taken beside the weights, declared as data.",
    "fltrain.named_layers": "Layers of a model by a word: the head, a name, a kind.",
    "fltrain.tree": "Trees of tensors.",
    "fltrain.draws": "Draws by counter.",
    "fltrain.evidence.api": "Tables of runs, with tests.",
    "fltrain.evidence.comparing": "Families of comparisons in pairs: claimed, without evidence, or refused.",
    "fltrain.evidence.pairs": "What pairs of runs say of their differences.",
    "fltrain.evidence.sign_flip": "The test that claims rest on.",
    "fltrain.evidence.power": "What a design could have seen, and how many pairs it takes.",
    "fltrain.evidence.intervals": "Intervals of a mean.",
    "fltrain.evidence.ranking": "Algorithms ranked over splits.",
    "fltrain.advice.api": "Which algorithm a split calls for.",
    "fltrain.leaderboard.task": "Tasks of the leaderboard.",
    "fltrain.leaderboard.verifying": "Whether an entry is what its task asks for.",
    "fltrain.leaderboard.api": "From a folder of entries to boards and pages.",
    "fltrain.algorithms": "Algorithms by name. Each has its own entry on the page Algorithms.",
    "fltrain.models": "Models by name. Each has its own entry on the page Models.",
    "fltrain.presets": "The settings of papers, as rows with the place that says so.",
}
REGISTRIES = {
    "strategies": (STRATEGIES, "How examples are dealt. `niidpart make --strategy NAME`."),
    "transforms": (TRANSFORMS, "What is done to a party's features."),
    "sources": (SOURCES, "Where labels and features come from. `niidpart.load(NAME)`."),
    "pictures": (PICTURES, "Kinds of picture. `niidpart plot --kind NAME`."),
    "formats": (FORMATS, "Layouts of other libraries. `niidpart export --to NAME`."),
    "algorithms": (ALGORITHMS, "`fltrain run --algorithm NAME`, `fltrain.algorithms.NAME()`."),
    "models": (
        MODELS,
        "`fltrain run --model NAME`. Each takes the shape of one example, (C, H, W) or (D,), and the "
        "number of classes K, and gives a module that maps `[B, *shape]` to logits [B, K]. A shape "
        "that the model is not made for is a `UsageError`.",
    ),
}


def write(folder: Path) -> None:
    """Write all API pages into the folder, with their index."""
    folder.mkdir(exist_ok=True)
    pages = {}
    for name, (package, about) in PACKAGES.items():
        pages[name] = _page(name, about, _of_package(package))
    for name, about in MODULES.items():
        pages[name] = _page(name, about, _of_module(name))
    for name, (registry, about) in REGISTRIES.items():
        pages[name] = _page(name.capitalize(), about, _of_registry(registry))
    pages["index"] = _index(list(pages))
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _page(title: str, about: str, entries: Iterable[str]) -> str:
    return "\n\n".join([f"{title}\n{'=' * len(title)}", about, *entries]) + "\n"


def _index(names: list[str]) -> str:
    lines = ["   " + name for name in names]
    return "API\n===\n\n.. toctree::\n   :maxdepth: 1\n\n" + "\n".join(lines) + "\n"


def _of_package(package: ModuleType) -> list[str]:
    """Return an entry for each exported name; what is another package's has its entry there."""
    exported = {name: getattr(package, name) for name in package.__all__}
    return [
        _entry(package.__name__, name, value)
        for name, value in exported.items()
        if not name.startswith("_") and _is_of(package, value)
    ]


def _is_of(package: ModuleType, value: object) -> bool:
    module = getattr(value, "__module__", package.__name__)
    return module.partition(".")[0] == package.__name__


def _of_module(name: str) -> list[str]:
    """Return an entry for each class and function that a module exports, as of a package."""
    module = importlib.import_module(name)
    package = importlib.import_module(name.partition(".")[0])
    exported = {key: getattr(module, key) for key in module.__all__}
    return [
        _entry(name, key, value)
        for key, value in exported.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and _is_of(package, value)
    ]


def _of_registry(registry: Registry) -> list[str]:
    entries = []
    for name in registry.names():
        function = inspect.unwrap(registry.find(name))
        title = f"{name}\n{'-' * len(name)}"
        entries.append(title)
        entries.append(f".. autofunction:: {function.__module__}.{function.__qualname__}")
    return entries


def _entry(module: str, name: str, value: object) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {module}.{name}\n   :members:"
    if inspect.isfunction(value):
        return f".. autofunction:: {module}.{name}"
    if inspect.ismodule(value):
        return f"``{module}.{name}`` is a package of its own, on the pages below."
    return f".. autodata:: {module}.{name}"
