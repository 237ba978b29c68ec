"""Runs beside each other: what they reached, and whether they may be compared."""

from typing import Any

from .store import RunFolder

_HARMLESS = {"checkpoint_every", "device", "threads"}  # settings that change no result beyond rounding


def summary(name: str, folder: RunFolder) -> dict[str, Any]:
    """Final and best test accuracy (None before the first evaluation), the round of the best, and all bytes moved."""
    history, algorithm = folder.history, folder.config["algorithm"]
    scored = [(m["test_accuracy"], m["round"]) for m in history if m.get("test_accuracy") is not None]
    best, best_round = max(scored, key=lambda s: (s[0], -s[1])) if scored else (None, None)
    return {
        "run": name,
        "algorithm": " ".join([algorithm["name"], *(f"{k}={v}" for k, v in algorithm.get("options", {}).items())]),
        "rounds": len(history),
        "final": scored[-1][0] if scored else None,
        "best": best,
        "best_round": best_round,
        "bytes": sum(m["bytes_down"] + m["bytes_up"] for m in history),
    }


def differences(folders: list[RunFolder]) -> list[str]:
    """What besides the algorithm differs between the runs and changes their results, one line each. [] for a fair comparison."""
    configs = [f.config for f in folders]
    flat = [{"split": c["split"][:12], "model": c["model"]} | {k: v for k, v in c["settings"].items() if k not in _HARMLESS} for c in configs]
    return [f"{key} ({', '.join(str(c[key]) for c in flat)})" for key in flat[0] if len({str(c[key]) for c in flat}) > 1]
