"""`niidpart recipes`."""

import json
from typing import Any

import click


def recipes_command() -> click.Command:
    @click.command(
        help="List the settings of published experiments; with NAME those of one paper (niid), or all of one setting (niid/mnist-dir0.5)."
    )
    @click.argument("name", required=False)
    @click.option("--json", "for_machines", is_flag=True, help="For machines.")
    def recipes(name: str | None, for_machines: bool) -> None:
        from niidpart import recipes

        single = {name: recipes.find_recipe(name)} if name and "/" in name else None
        found = single or {
            n: r
            for paper in ([name] if name else recipes.list_papers())
            for n, r in recipes.load_paper(paper).items()
        }
        if for_machines:
            click.echo(
                json.dumps(
                    {
                        n: {**r.to_json(), "recipe": _complete(r, n).to_json()}
                        for n, r in found.items()
                    }
                )
            )
        elif single:
            click.echo("\n".join(_in_full(*item) for item in single.items()))
        else:
            width = max(map(len, found))
            click.echo("\n".join(f"{n:{width}}  {r.about}" for n, r in found.items()))

    return recipes


def _complete(recipe: Any, name: str) -> Any:
    from niidpart.making.completion import compose

    return compose(recipe=name)


def _in_full(name: str, recipe: Any) -> str:
    """What it is, and the command that says the same without the name."""
    whole = _complete(recipe, name)
    lines = [
        f"{name}: {recipe.about}",
        f"data      {' '.join([recipe.dataset, *(f'{k}={_text(v)}' for k, v in recipe.source.items())])}",
        f"strategy  {_step(whole.strategy, whole.params)}",
        *(f"transform {_step(t.name, t.params)}" for t in whole.transforms),
        f"parties   {whole.n_parties}, seed {whole.seed}"
        + "".join(f", {part} {f}" for part, f in (("val", whole.val), ("test", whole.test)) if f),
        f"command   {_command(recipe, whole)}",
    ]
    return "\n".join(lines)


def _step(name: str, params: dict[str, Any]) -> str:
    return " ".join([name, *(f"{k}={_text(v)}" for k, v in params.items() if v is not None)])


def _command(recipe: Any, whole: Any) -> str:
    words = ["niidpart make", f"--dataset {recipe.dataset}", "--data-root DIR"]
    words += [_flag(k, v) for k, v in recipe.source.items()]
    words += [
        f"--strategy {whole.strategy}",
        *(_flag(k, v) for k, v in whole.params.items() if v is not None),
    ]
    words += [
        f"--transform {t.name}:{','.join(f'{k}={_text(v)}' for k, v in t.params.items())}"
        for t in whole.transforms
    ]
    words += [f"--parties {whole.n_parties}", f"--seed {whole.seed}"]
    return " ".join(
        words + [f"--{part} {f}" for part, f in (("val", whole.val), ("test", whole.test)) if f]
    )


def _flag(key: str, value: Any) -> str:
    flag = key.replace("_", "-")
    return f"--{'' if value else 'no-'}{flag}" if isinstance(value, bool) else f"--{flag} {value}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
