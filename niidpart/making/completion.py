"""`compose`: from what was asked for to a complete Recipe, every option checked and written out."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

from ..errors import UsageError, require_type
from ..recipes import NamedRecipe, find_recipe
from ..registry import UNSET, cite_function, did_you_mean
from ..splits.recipe import Recipe, Transform
from ..strategies import STRATEGIES
from ..transforms import TRANSFORMS

Options = Mapping[str, Any]

# What holds where nothing is said.
_DEFAULT = NamedRecipe(about="", dataset="", strategy="dir", n_parties=None)
_PAIRS = 'a list of (name, options) such as [("noise", {"sigma": 0.1})]'
_N_PARTIES = 10  # unless the strategy has its own number


def compose(
    strategy: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    like: str | None = None,
    n_parties: int | None = None,
    seed: int = UNSET,
    transforms: Sequence[tuple[str, Options]] | None = None,
    val: float = UNSET,
    test: float = UNSET,
    **options: Any,
) -> Recipe:
    """Return the complete recipe of what `make` is asked for: all checked, all written out.

    Parameters
    ----------
    strategy, recipe, like, n_parties, seed, transforms, val, test, **options
        As `make` takes them. A transform's name as strategy is `homo` with that transform. The
        strategy's options in a `recipe` go where another strategy is given.

    Returns
    -------
    Recipe

    Raises
    ------
    UsageError
        For an unknown name, with the nearest one, and for a value that cannot be.

    Examples
    --------
    >>> compose("labels", n_parties=5).params
    {'k': 2}
    >>> compose(recipe="niid/mnist-dir0.5", beta=0.1).params
    {'beta': 0.1, 'min_size': 10}
    """
    base = _find_base(recipe)
    if strategy is None:
        strategy = base.strategy
    require_type("strategy", strategy, str, "the name of a strategy")
    if strategy == base.strategy:
        options = {**base.params, **options}
    pairs = _to_pairs(base.transforms if transforms is None else transforms)
    n_parties = base.n_parties if n_parties is None else n_parties
    if strategy in TRANSFORMS.names():
        pairs.append((strategy, options))
        strategy, options = "homo", {}
    if like is not None:
        strategy, options = _find_replay(like, strategy, options)
    _require_strategy(strategy)
    _require_own_transforms(pairs)
    asked = Recipe(
        strategy=cite_function(strategy, STRATEGIES.kind),
        params=options,
        n_parties=_choose_n_parties(strategy, n_parties),
        seed=base.seed if seed is UNSET else seed,
        transforms=tuple(Transform(name, dict(given)) for name, given in pairs),
        val=base.val if val is UNSET else val,
        test=base.test if test is UNSET else test,
    )
    return complete_recipe(asked)


def complete_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe with every option checked and every default written out."""
    transforms = [
        Transform(t.name, TRANSFORMS.complete(t.name, t.params)) for t in recipe.transforms
    ]
    params = STRATEGIES.complete(recipe.strategy, recipe.params)
    return replace(recipe, params=params, transforms=tuple(transforms))


def list_peers() -> dict[str, tuple[str, ...]]:
    """Return each replay of a peer's code with the strategies that it has.

    A replay is a strategy with an option `rule`. Rules that came later with options of their own
    stand in a file of their own, which names its PEER: more options would change old digests.
    """
    peers: dict[str, tuple[str, ...]] = {}
    for name in STRATEGIES.names():
        options = STRATEGIES.options(STRATEGIES.find(name))
        if "rule" in options:
            peer = _find_peer(name)
            peers[peer] = peers.get(peer, ()) + typing.get_args(options["rule"].annotation)
    return peers


def _find_peer(replay: str) -> str:
    """Return the peer whose code a replay is of."""
    return str(getattr(STRATEGIES.module(replay), "PEER", replay))


def _find_rule(peer: str, rule: str) -> str:
    """Return the strategy that has a rule of a peer."""
    (name,) = [
        name
        for name in STRATEGIES.names()
        if _find_peer(name) == peer and rule in getattr(STRATEGIES.module(name), "RULES", ())
    ]
    return name


def list_versions(replay: str) -> tuple[str, ...]:
    """Return the versions of a peer's code that a strategy replays, () where it has none."""
    option = STRATEGIES.options(STRATEGIES.find(replay)).get("version")
    return typing.get_args(option.annotation) if option else ()


def _find_base(recipe: str | Recipe | None) -> Recipe | NamedRecipe:
    """Return what holds of all that is not said."""
    if recipe is None:
        return _DEFAULT
    if isinstance(recipe, str):
        return find_recipe(recipe)
    require_type("recipe", recipe, Recipe, "a Recipe, or the name of one")
    return recipe


def _to_pairs(
    transforms: Sequence[Transform | tuple[str, Options]],
) -> list[tuple[str, Options]]:
    require_type("transforms", transforms, Sequence, _PAIRS)
    pairs = []
    for transform in transforms:
        if isinstance(transform, Transform):
            transform = (transform.name, transform.params)
        is_pair = isinstance(transform, tuple | list) and len(transform) == 2
        if not is_pair or not isinstance(transform[0], str):
            raise UsageError(f"transforms has {transform!r} in it; {_PAIRS} is needed")
        name, options = transform
        require_type(f"options of the transform {name!r}", options, Mapping)
        pairs.append((name, options))
    return pairs


def _find_replay(like: str, strategy: str, options: Options) -> tuple[str, dict[str, Any]]:
    """Return (strategy, options) of a strategy as a peer has it. like: PEER or PEER@VERSION."""
    peers = list_peers()
    require_type("like", like, str, "the name of a peer")
    peer, at, version = like.partition("@")
    if peer not in peers:
        raise UsageError(f"there is no replay of {peer!r}; {did_you_mean(peer, peers)}")
    if strategy not in peers[peer]:
        advice = did_you_mean(strategy, peers[peer])
        raise UsageError(f"{peer} has no strategy {strategy!r}; {advice}")
    # An option that this rule does not have is refused, also where another of the peer's has it.
    replay = _find_rule(peer, strategy)
    own = STRATEGIES.module(replay).RULES[strategy]
    foreign = {name: value for name, value in options.items() if name not in own}
    if foreign and strategy in STRATEGIES.names():
        STRATEGIES.complete(strategy, foreign)
    chosen = {**options, "rule": strategy}
    if at:
        chosen["version"] = _find_version(peer, replay, version)
    return replay, chosen


def _find_version(peer: str, replay: str, version: str) -> str:
    """Return a version of which there is a replay; UsageError with the nearest for another."""
    versions = list_versions(replay)
    if not versions:
        raise UsageError(f"the replay of {peer} has no versions; leave out @{version}")
    if version not in versions:
        advice = did_you_mean(version, versions)
        raise UsageError(f"there is no replay of {peer} in version {version!r}; {advice}")
    return version


def _require_strategy(name: str) -> None:
    """Raise UsageError unless there is a strategy of that name, or it is a user's own."""
    if ":" not in name and name not in STRATEGIES.names():
        advice = did_you_mean(name, STRATEGIES.names() + TRANSFORMS.names())
        raise UsageError(f"unknown strategy {name!r}; {advice}")


def _require_own_transforms(pairs: Sequence[tuple[str, Options]]) -> None:
    """Raise UsageError for a transform in a user's file, which readers of the split do not have."""
    for name, _ in pairs:
        if ":" in name:
            raise UsageError(
                f"transform {name!r} is not niidpart's own; whoever reads the split applies it, "
                f"so it has to be one of {TRANSFORMS.names()}"
            )


def _choose_n_parties(strategy: str, asked: int | None) -> int:
    """Return the number asked for, else the strategy's own, else 10.

    Its own is annotated as a Literal, and then there is no other, or is a default.
    """
    function = STRATEGIES.find(strategy)
    parameters = signature(function).parameters
    for name in ("n_parties", "rng"):
        if name not in parameters:
            raise UsageError(
                f"strategy {strategy!r} has no parameter {name}; it must be a function "
                "(labels, n_parties, rng, *, options)"
            )
    possible = typing.get_args(typing.get_type_hints(function).get("n_parties"))
    default = parameters["n_parties"].default
    if asked is None:
        own = possible[0] if possible else default
        return _N_PARTIES if own is Parameter.empty else int(own)
    if possible and asked not in possible:
        among = " or ".join(map(str, possible))
        raise UsageError(f"{strategy} splits among {among} parties, {asked} were asked for")
    return asked
