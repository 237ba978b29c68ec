"""Parties that do a part of the work of a round: FedProx's systems heterogeneity.

Drawn by seed, round and party, so that it does not depend on who trains where.
"""

from collections.abc import Sequence

from ..counting import count_steps
from ..draws import key
from ..settings import Settings


def choose_stragglers(parties: Sequence[int], settings: Settings, round: int) -> set[int]:
    """Return the parties of a round that do a part of the work: the share that was asked for."""
    different = sorted(set(parties))
    n = count_stragglers(len(different), settings)
    by_chance = sorted(different, key=lambda party: key(settings.seed, "straggler", round, party))
    return set(by_chance[:n])


def count_stragglers(n_parties: int, settings: Settings) -> int:
    """Return how many of so many parties do a part of the work, a half rounded upwards."""
    return int(settings.stragglers * n_parties + 0.5)


def draw_part(n: int, party: int, settings: Settings, round: int) -> int:
    """Return the steps of a straggler with n examples.

    A number of epochs from 1 to all, or, where steps are set, of steps, each as likely.
    """
    drawn = key(settings.seed, "part of the work", round, party)
    if settings.local_steps is not None:
        return drawn % settings.local_steps + 1 if n else 0
    epochs = drawn % settings.local_epochs + 1
    return count_steps(n, settings, epochs)
