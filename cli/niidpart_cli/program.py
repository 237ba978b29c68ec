"""What both commands share: exit codes, errors, and options that come from the signatures of a registry."""

import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from niidpart.registry import Option

EXIT_CODES = (
    "Exit codes: 0 done; 1 a file or the machine is at fault, or diff found a difference; 2 what was asked cannot be done; "
    "3 verify could not re-derive; 130 interrupted."
)

EXTRAS = {
    "torch": "train",
    "safetensors": "train",
    "matplotlib": "plot",
    "datasets": "hub",
    "huggingface_hub": "hub",
    "yaml": "hub",
}
EXTRAS |= {"sklearn": "data", "pyarrow": "data", "PIL": "data"}  # module -> extra of pyproject.toml


class Program(click.Group):
    """A group whose commands are made when they are needed, and whose errors say what to do instead of showing a traceback.

    makers: name -> (one line of help, function that makes the command).
    """

    def __init__(
        self, *args: Any, makers: dict[str, tuple[str, Callable[[], click.Command]]], **kwargs: Any
    ):
        super().__init__(
            *args,
            epilog=EXIT_CODES,
            context_settings={"help_option_names": ["-h", "--help"]},
            **kwargs,
        )
        self.makers = makers

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.makers)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return self.makers[name][1]() if name in self.makers else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (help, _) in self.makers.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.makers:
            from niidpart.registry import did_you_mean

            raise click.UsageError(
                f"unknown command {args[0]!r}; {did_you_mean(args[0], list(self.makers))}", ctx
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            extra = EXTRAS.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            raise click.ClickException(
                f"this needs {error.name}; pip install 'niidpart[{extra}]'"
            ) from error
        except (OSError, ValueError) as error:
            from niidpart.errors import FileFault

            if isinstance(error, OSError | FileFault):
                raise click.ClickException(str(error)) from error
            raise click.UsageError(
                "\n".join([f"{error}{_raised_in(error)}", *getattr(error, "__notes__", [])])
            ) from error

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        """As click's, but an interrupt is exit code 130, as shells expect."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **kwargs)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_: click.echo(
                    f"warning: {message}", err=True
                )
                sys.exit(super().main(*args, standalone_mode=False, **kwargs) or 0)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(130)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)


def _raised_in(error: BaseException) -> str:
    """Where an error was raised, if by a file of the user's own."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = {
        Path(sys.modules[name].__file__ or "").parent
        for name in ("niidpart", "fltrain", __package__)
        if name in sys.modules
    }
    library = Path(last.filename).is_relative_to(sys.prefix) or Path(last.filename).is_relative_to(
        sys.base_prefix
    )
    own = (
        library
        or last.filename.startswith("<")
        or any(Path(last.filename).is_relative_to(folder) for folder in ours)
    )
    return "" if own else f" ({last.filename}, line {last.lineno})"


def union_options(declared: "Iterable[tuple[str, Option]]") -> list[click.Option]:
    """One option for each name; its help says what it means and which entries have it, with their defaults. Not given means None."""
    owners: dict[str, list[tuple[str, Option]]] = {}
    for entry, option in declared:
        owners.setdefault(option.name, []).append((entry, option))
    options = []
    for name, who in owners.items():
        flag = name.replace("_", "-")
        kind = click_type(who[0][1].annotation)
        declaration = f"--{flag}/--no-{flag}" if kind is click.BOOL else f"--{flag}"
        options.append(
            click.Option(
                [declaration, name],
                type=None if kind is click.BOOL else kind,
                default=None,
                help=_meaning(who),
            )
        )
    return options


def _meaning(who: "list[tuple[str, Option]]") -> str:
    """`TEXT  [entry default, ...]`, each text once, before those that have it."""
    said: dict[str, list[str]] = {}
    for entry, option in who:
        said.setdefault(option.help, []).append(
            entry + ("" if option.default is Parameter.empty else f" {option.default}")
        )
    return "  ".join(f"{text}  [{', '.join(entries)}]".strip() for text, entries in said.items())


def listing(registry: Any) -> str:
    """Return the entries of a registry for a help text, each with its summary."""
    return "\n".join(f"  {name:12} {registry.summary(name)}" for name in registry.names())


def click_type(annotation: Any) -> click.ParamType:
    """The click type of an annotation: int, float, str, bool, a Literal of strings, tuple[int, ...]; `X | None` is X."""
    if get_origin(annotation) is Literal:
        return click.Choice([str(a) for a in get_args(annotation)])
    if get_origin(annotation) is tuple:
        return Rounds()
    inner = [a for a in get_args(annotation) if a is not type(None)]
    if inner:
        return click_type(inner[0])
    return {int: click.INT, float: click.FLOAT, bool: click.BOOL}.get(annotation, click.STRING)


class Rounds(click.ParamType):
    """`40,80` as (40, 80); nothing at all, as in `--milestones ''`, as ()."""

    name = "rounds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return (
                value
                if isinstance(value, tuple)
                else tuple(int(v) for v in value.split(","))
                if value.strip()
                else ()
            )
        except ValueError:
            self.fail(f"{value!r} is not a list of rounds such as 40,80", param, ctx)


def given(values: dict[str, Any], options: Sequence[click.Parameter]) -> dict[str, Any]:
    """Those of the options that the user gave."""
    names = {o.name for o in options}
    return {k: v for k, v in values.items() if k in names and v is not None}


def given_besides(values: dict[str, Any], fixed: Sequence[click.Parameter]) -> dict[str, Any]:
    """What the user gave that is none of the fixed parameters: the options of the chosen entry, which may be the user's own."""
    names = {p.name for p in fixed}
    return {k: v for k, v in values.items() if k not in names and v is not None}


class Entry(click.ParamType):
    """The name of a file in a package, or a user's own `file.py:function`; completes both. What is no entry is refused by whoever looks it up."""

    name = "text"

    def __init__(self, package: str):
        self.package = package

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from niidpart.registry import list_names

        names = [n for n in list_names(self.package) if n.startswith(incomplete)]
        return [CompletionItem(n) for n in names] or [CompletionItem(incomplete, type="file")]


class Pluggable(click.Command):
    """A command with an option (`--strategy`) whose value may be a user's own function; that function's options are then options too."""

    def __init__(
        self, *args: Any, plug: str, own_options: Callable[[str], list[click.Option]], **kwargs: Any
    ):
        super().__init__(*args, **kwargs)
        self.plug, self.own_options = plug, own_options

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        values = [b for a, b in pairwise(args) if a == self.plug]
        values += [a.split("=", 1)[1] for a in args if a.startswith(f"{self.plug}=")]
        if values and ":" in values[-1]:
            have = {p.name for p in self.params}
            self.params = [
                *self.params,
                *(o for o in self.own_options(values[-1]) if o.name not in have),
            ]
        return super().parse_args(ctx, args)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Plain text, numbers to the right."""
    cells = [list(header), *([str(c) for c in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    left = [not any(_is_number(row[i]) for row in cells[1:]) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            c.ljust(w) if to_left else c.rjust(w)
            for c, w, to_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in cells
    )


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("%", "").isdigit()
