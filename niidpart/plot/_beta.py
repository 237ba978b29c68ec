"""The beta that a recipe gives to the classes."""

from ..splits.split import FederatedSplit

_LABEL_SKEW = ("dir", "dir-balanced", "party-dir")  # quantity's beta is that of the sizes


def find_label_beta(split: FederatedSplit) -> float | None:
    """Return the Dirichlet concentration of the classes; None where the recipe has none."""
    recipe = split.recipe
    rule = recipe.params.get("rule", recipe.strategy)  # of a replay the strategy that it is like
    if rule not in _LABEL_SKEW:
        return None
    beta = recipe.params.get("beta")
    return beta if isinstance(beta, float) else None
