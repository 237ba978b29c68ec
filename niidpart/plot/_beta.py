"""The beta that a recipe gives to the classes."""

from ..splits.split import FederatedSplit

_LABEL_SKEW = ("dir", "dir-balanced", "party-dir")  # quantity's beta is that of the sizes


def find_label_beta(split: FederatedSplit) -> float | None:
    """The Dirichlet concentration of the classes; None where the recipe has none."""
    recipe = split.recipe
    replayed = recipe.strategy == "niidbench" and recipe.params.get("rule") == "dir"
    beta = recipe.params.get("beta") if recipe.strategy in _LABEL_SKEW or replayed else None
    return beta if isinstance(beta, float) else None
