"""The parties that a run folder says were held out, compared with those that its seed draws."""

import niidpart
from niidpart.splits.recipe import JSON

from ..disk.plain_folder import RunError
from ..inputs.new_parties import draw_new_parties
from ..settings import Settings
from .configuration import CONFIG, NEW_PARTIES


def require_drawn(config: JSON, split: niidpart.FederatedSplit) -> niidpart.FederatedSplit:
    """Return the split of a run.

    RunError where the configuration names other parties as held out than its seed draws of it.
    """
    stated = config.get(NEW_PARTIES, [])
    settings = config["settings"]
    asked = {name: settings[name] for name in ("seed", NEW_PARTIES) if name in settings}
    drawn = list(draw_new_parties(split, Settings.of(asked)))
    if stated != drawn:
        raise RunError(
            f"{CONFIG} says that {_name_parties(stated)} were held out, and its seed draws "
            f"{_name_parties(drawn)}: it was changed, or written by a version that drew otherwise"
        )
    return split


def _name_parties(numbers: list[int]) -> str:
    return f"the parties {', '.join(map(str, numbers))}" if numbers else "no parties"
