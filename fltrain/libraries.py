"""Names of models: those of a library, those of one's own code, several in one. Needs no torch."""

import re

TORCHVISION = "torchvision:"
AND = "+"  # between the names of unlike models: cnn+mlp

# One name, and what follows it. A file's path may have a + before its colon.
_NAME = re.compile(r"([\w-]+|[^:+][^:]*:[^+]+)(\+|$)")


def is_own_code(spec: str) -> bool:
    """Return whether a name means code of a user's own: `file.py:function`, `module:function`."""
    return ":" in spec and not spec.startswith(TORCHVISION)


def list_models(spec: str) -> list[str]:
    """Return the names that stand in one, `cnn+mlp`: the models that parties take turns in.

    One where all are the same. What is no such list is one name: whoever looks it up says so.
    """
    names = []
    at = 0
    while found := _NAME.match(spec, at):
        names.append(found[1])
        at = found.end()
        if not found[2]:
            return names if len(set(names)) > 1 else names[:1]
    return [spec]
