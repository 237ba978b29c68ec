"""A folder is a registry: `strategies/dir.py` is the strategy `dir`. Its one function is what `__all__` names first, else the file's name;
that function's signature is its options: on the command line, in the help, in the checks. Nothing has to be listed anywhere else.

`mu: Annotated[float, "Weight of the pull, at least 0."] = 0.01` is an option with its help.
"""

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import math
import numbers
import pkgutil
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from .errors import UsageError

Function = Callable[..., Any]


class Option(NamedTuple):
    """An option of an entry. annotation: the bare type. default: Parameter.empty where it has to be given. help: "" where its annotation has none."""

    name: str
    annotation: Any
    default: Any
    help: str


class Registry:
    """The entries of one folder: `Registry("niidpart.strategies", "strategy")`.

    Options of an entry are its keyword-only parameters and those with a default, without the ones that the caller fills in (`given`).
    """

    def __init__(self, package: str, kind: str, given: frozenset[str] = frozenset()):
        self.package, self.kind, self.given = package, kind, given

    def names(self) -> list[str]:
        """All entries, sorted; `party_dir.py` is `party-dir`."""
        return names_in(self.package)

    def module(self, name: str) -> ModuleType:
        """The file of a built-in entry; ValueError with the nearest name where there is none."""
        names = self.names()
        if name not in names:
            raise UsageError(f"unknown {self.kind} {name!r}; {did_you_mean(name, names)}")
        return importlib.import_module(f"{self.package}.{name.replace('-', '_')}")

    def find(self, name: str) -> Function:
        """The function of a built-in entry, or your own: `file.py:function`, `package.module:function`, or as `cited` names it."""
        if ":" in name:
            return _own(name, self.kind)
        module = self.module(name)
        entry = getattr(module, "__all__", [module.__name__.rpartition(".")[2]])[0]
        if not callable(getattr(module, entry, None)):
            raise UsageError(
                f"{module.__file__} has no function {entry!r}; name its function after the file, or in __all__"
            )
        return typing.cast(Function, getattr(module, entry))

    def absolute(self, name: str) -> str:
        """`name`, with the whole path of a user's file, so that it is found from every folder."""
        where, _, attribute = name.rpartition(":")
        return f"{Path(where).resolve()}:{attribute}" if where.endswith(".py") else name

    def cited(self, name: str) -> str:
        """`name` as a recipe says it: a user's file without its folder but with the beginning of its sha256, so that the same code in
        another place has the same name, and other code in the same place another one."""
        where, _, attribute = name.rpartition(":")
        if not where.endswith(".py") or "#" in attribute:
            return name
        self.find(name)
        return f"{Path(where).name}:{attribute}#{_fingerprint(Path(where))}"

    def options(self, function: Function) -> dict[str, Option]:
        """The options of one function, annotations resolved."""
        bare, whole = (
            typing.get_type_hints(function),
            typing.get_type_hints(function, include_extras=True),
        )
        parameters = inspect.signature(function).parameters.values()
        return {
            p.name: Option(p.name, bare.get(p.name, str), p.default, _help(whole.get(p.name)))
            for p in parameters
            if p.name not in self.given and (p.kind is p.KEYWORD_ONLY or p.default is not p.empty)
        }

    def union(self) -> Iterator[tuple[str, Option]]:
        """(entry, option) over the whole folder: what a command line offers."""
        for name in self.names():
            for option in self.options(self.find(name)).values():
                yield name, option

    def complete(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options of an entry: those given, checked, and the defaults of the rest."""
        declared = self.options(self.find(name))
        for key in options:
            if key not in declared:
                raise UsageError(
                    f"{self.kind} {name!r} has no option {key!r}; {self._who_has(key, list(declared))}"
                )
        missing = [
            key
            for key, p in declared.items()
            if p.default is inspect.Parameter.empty and key not in options
        ]
        if missing:
            raise UsageError(f"{self.kind} {name!r} needs {', '.join(missing)}")
        return {
            key: typed(f"{self.kind} {name!r}: {key}", options.get(key, p.default), p.annotation)
            for key, p in declared.items()
        }

    def _who_has(self, key: str, declared: list[str]) -> str:
        owners = [name for name, option in self.union() if option.name == key]
        if owners:
            return f"it belongs to {', '.join(owners)}"
        return did_you_mean(key, declared) if declared else "it takes no options"


def names_in(package: str) -> list[str]:
    """The files of a package without those that begin with `_`, sorted; the package itself is not imported."""
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    return sorted(
        m.name.replace("_", "-")
        for m in pkgutil.iter_modules(folders)
        if not m.name.startswith("_")
    )


def _help(annotation: Any) -> str:
    """The first text in an Annotated."""
    return next(
        (text for text in getattr(annotation, "__metadata__", ()) if isinstance(text, str)), ""
    )


def did_you_mean(name: str, names: list[str]) -> str:
    """The nearest names, for an error."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    start = f"did you mean {near[0]!r}? " if near else ""
    return f"{start}there are: {', '.join(names)}"


def typed(what: str, value: Any, annotation: Any) -> Any:
    """`value` as the annotated type, else ValueError. Integers become floats and lists tuples; nothing else is converted. NaN is refused."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if type(None) in arguments:  # X | None
        return None if value is None else typed(what, value, arguments[0])
    if origin is typing.Literal:
        if value not in arguments:
            raise UsageError(
                f"{what} is {value!r}; it must be one of {', '.join(map(str, arguments))}"
            )
        return value
    if origin is tuple:
        if not isinstance(value, tuple | list):
            raise UsageError(f"{what} is {value!r}; it must be a list")
        return tuple(typed(what, v, arguments[0]) for v in value)
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if annotation is float and number:
        if not math.isfinite(value):
            raise UsageError(f"{what} is {value}; it must be a finite number")
        return float(value)
    if annotation is int and number and hasattr(value, "__index__"):
        return int(value)
    if annotation in (int, float) or (
        isinstance(annotation, type) and not isinstance(value, annotation)
    ):
        raise UsageError(
            f"{what} is {value!r}; it must be {_KINDS.get(annotation, annotation.__name__)}"
        )
    return value


_KINDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}


def _own(name: str, kind: str) -> Function:
    """A user's function: `file.py:function`, `package.module:function`, or a cited one that was loaded before."""
    where, _, attribute = name.rpartition(":")
    attribute, _, fingerprint = attribute.partition("#")
    if fingerprint:
        module = sys.modules.get(f"niidpart_own_{fingerprint}")
        if module is None:
            raise UsageError(
                f"{kind} {name!r} is a user's own; give the file itself, {where}:{attribute}"
            )
    elif where.endswith(".py"):
        module = _load(Path(where).resolve(), f"{kind} {name!r}")
    else:
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"{kind} {name!r}: {error}; give file.py:function or package.module:function"
            ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        public = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise UsageError(
            f"{kind} {name!r}: {where} has no function {attribute!r}; {did_you_mean(attribute, public)}"
        )
    return typing.cast(Function, function)


def _fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _load(path: Path, who: str) -> ModuleType:
    """The module in a user's file. The same text is loaded once, wherever it stands; a changed text is loaded anew."""
    if not path.is_file():
        raise UsageError(f"{who}: there is no file {path}")
    alias = f"niidpart_own_{_fingerprint(path)}"
    if alias in sys.modules:
        return sys.modules[alias]
    spec = importlib.util.spec_from_file_location(alias, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded as python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[alias]  # half loaded: the next try has to see the same error
        raise
    return module
