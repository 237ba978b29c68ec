"""What is measured at home needs examples there that nobody trains on."""

import niidpart
from niidpart.errors import UsageError

from ..settings import Settings

_ADVICE = "make the split with one: niidpart make ... --{} 0.2"


def require_home_parts(split: niidpart.FederatedSplit, settings: Settings) -> None:
    """Raise UsageError where a run would wait for a number of the parties that it can never have.

    That of fine-tuning needs a test or a validation part, one that the run stops at just that part.
    """
    held = [name for name in ("test", "val") if split.parts[name].n]
    if settings.finetune and not held:
        raise UsageError(
            "what fine-tuning comes to is measured at home, and the parties have no test part; "
            f"leave finetune out, or {_ADVICE.format('test')}"
        )
    rule = settings.stop_rule
    for name in ("test", "val"):
        if rule is not None and f"party_{name}_" in rule.metric and name not in held:
            raise UsageError(
                f"stop-at waits for {rule.metric}, and the parties have no {name} part; "
                f"{_ADVICE.format(name)}"
            )
