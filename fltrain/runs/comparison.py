"""Runs beside each other: what they reached, and whether they may be compared."""

import json
from dataclasses import asdict
from typing import Any

from ..settings import Settings
from .folder import RunFolder

_HARMLESS = {
    "checkpoint_every",
    "device",
    "threads",
    "engine",
    "workers",
    "memory",
}  # settings that change no result beyond rounding


def summary(name: str, folder: RunFolder) -> dict[str, Any]:
    """Final and best test accuracy (None before the first evaluation), the round of the best, and all bytes moved. personal: the last mean over
    parties of their own model's accuracy on their own test part, None where they have neither."""
    history, algorithm = folder.history, folder.config["algorithm"]
    own = [
        m["personal_party_test_accuracy_mean"]
        for m in history
        if "personal_party_test_accuracy_mean" in m
    ]
    scored = [
        (m["test_accuracy"], m["round"]) for m in history if m.get("test_accuracy") is not None
    ]
    best, best_round = max(scored, key=lambda s: (s[0], -s[1])) if scored else (None, None)
    return {
        "run": name,
        "algorithm": " ".join(
            [algorithm["name"], *(f"{k}={v}" for k, v in algorithm.get("options", {}).items())]
        ),
        "rounds": len(history),
        "final": scored[-1][0] if scored else None,
        "best": best,
        "best_round": best_round,
        "personal": own[-1] if own else None,
        "bytes": sum(m["bytes_down"] + m["bytes_up"] for m in history),
    }


def differences(folders: dict[str, RunFolder]) -> list[str]:
    """What besides the algorithm differs between the runs and changes their results, one line each. [] for a fair comparison."""
    flat = {name: _comparable(folder.config) for name, folder in folders.items()}
    keys = dict.fromkeys(key for values in flat.values() for key in values)
    out = []
    for key in keys:
        runs: dict[str, list[str]] = {}
        for name, values in flat.items():
            runs.setdefault(str(values.get(key)), []).append(name)
        if len(runs) > 1:
            rare_first = sorted(runs.items(), key=lambda item: len(item[1]))
            said = [f"{value} in {', '.join(who)}" for value, who in rare_first[:-1]]
            out.append(
                f"{key}: {'; '.join(said)}; {rare_first[-1][0]} in the other{'s' if len(rare_first[-1][1]) > 1 else ''}"
            )
    return out


def _comparable(config: dict[str, Any]) -> dict[str, Any]:
    """What a result depends on besides the algorithm. parameters: of the model that was trained, which the algorithm may have changed.
    A setting that a folder lacks, since it is older, has its default."""
    told = {"split": config["split"][:12], "model": config["model"]} | (
        {"parameters": config["parameters"]} if "parameters" in config else {}
    )
    settings = (
        json.loads(json.dumps(asdict(Settings()))) | config["settings"]
    )  # by JSON, in which a tuple is a list
    return told | {k: v for k, v in settings.items() if k not in _HARMLESS}
