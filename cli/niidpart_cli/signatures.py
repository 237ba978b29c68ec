"""The functions of a folder as their source declares them, without importing what they need.

Help and completion have to be there at once, also where torch is missing, and an algorithm's file
imports torch. What they need of it, a signature and a docstring, stands in its text.
"""

import ast
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from niidpart.registry import Function, Registry


class SourceRegistry(Registry):
    """A registry whose functions are stand-ins: signature and docstring of the real ones."""

    def find(self, name: str) -> Function:
        """Return the stand-in of an entry; a user's own function is imported."""
        if ":" in name or name not in self.names():
            return super().find(name)
        file = name.replace("-", "_")
        source = _Source(self.package, file)
        exported = source.constant("__all__", [file])
        return source.build_function(exported[0])


class _Source(Mapping[str, Any]):
    """The names of a file, each evaluated when it is asked for.

    A name is a constant of the file, one that it imports, or one of python's own. What is imported
    by a relative path is read in the same way; any other module is imported, such as `typing`.
    """

    def __init__(self, package: str, file: str):
        self.package = package
        self.tree = _parse(package, file)

    def __getitem__(self, name: str) -> Any:
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and _is_name(node.targets[0], name):
                return self.evaluate(node.value)
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._import(node, alias.name)
        raise KeyError(name)  # then python looks among the builtins

    def __iter__(self) -> Iterator[str]:
        raise TypeError("the names of a file are looked up one by one")

    def __len__(self) -> int:
        return len(self.tree.body)

    def constant(self, name: str, default: Any) -> Any:
        """Return a constant of the file, or the default where it has none of that name."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and _is_name(node.targets[0], name):
                return self.evaluate(node.value)
        return default

    def evaluate(self, expression: ast.expr) -> Any:
        code = compile(ast.Expression(expression), self.package, "eval")
        return eval(code, {}, self)

    def build_function(self, name: str) -> Function:
        """Return a function that can only be asked what it takes and what it says."""
        node = next(node for node in self.tree.body if _is_function(node, name))
        assert isinstance(node, ast.FunctionDef)

        def stand_in() -> None:
            raise TypeError(f"{name} was read from its source; it cannot be called")

        parameters = list(self._read_parameters(node.args))
        stand_in.__name__ = name
        stand_in.__doc__ = ast.get_docstring(node)
        stand_in.__annotations__ = {p.name: p.annotation for p in parameters}
        stand_in.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return stand_in

    def _read_parameters(self, arguments: ast.arguments) -> Iterator[Parameter]:
        positional = [*arguments.posonlyargs, *arguments.args]
        n_required = len(positional) - len(arguments.defaults)
        defaults = [*[None] * n_required, *arguments.defaults]
        for argument, default in zip(positional, defaults, strict=True):
            yield self._read(argument, default, Parameter.POSITIONAL_OR_KEYWORD)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            yield self._read(argument, default, Parameter.KEYWORD_ONLY)

    def _read(self, argument: ast.arg, default: ast.expr | None, kind: Any) -> Parameter:
        value = Parameter.empty if default is None else self.evaluate(default)
        annotation = argument.annotation
        if annotation is None:
            return Parameter(argument.arg, kind, default=value)
        declared = self.evaluate(annotation)
        return Parameter(argument.arg, kind, default=value, annotation=declared)

    def _import(self, node: ast.ImportFrom, name: str) -> Any:
        if node.level and node.module:
            package = self.package.rsplit(".", node.level - 1)[0]
            return _Source(package, node.module)[name]
        module = importlib.import_module("." * node.level + (node.module or ""), self.package)
        return getattr(module, name)


@cache
def _parse(package: str, file: str) -> ast.Module:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).with_name(f"{file}.py").read_text())


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_function(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name
