"""MLflow."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from shlex import quote
from typing import Any

from ._interface import Log, PlacedLog, TrackedRun, select_numbers

__all__ = ["mlflow"]

_ID = "fltrain.id"  # the tag that a resumed run is found again by
_LONGEST = 6000  # letters of a parameter that MLflow takes


@contextmanager
def mlflow(run: TrackedRun) -> Iterator[Log]:
    """A run of MLflow, in the experiment fltrain or =EXPERIMENT. Needs mlflow or mlflow-skinny.

    Where it is written is MLflow's own choice: MLFLOW_TRACKING_URI, such as file:mlruns. A run that
    is resumed goes on as the same run.
    """
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    client = MlflowClient()
    run_id = _find_run(client, run)

    def log(round: int, metrics: Mapping[str, Any]) -> None:
        now = int(1000 * time.time())
        numbers = select_numbers(metrics)
        batch = [Metric(_fit_name(name), x, now, round) for name, x in numbers.items()]
        client.log_batch(run_id, batch)

    where = client.tracking_uri
    place = f"{where}, experiment {run.place or 'fltrain'}, run {run_id}"
    command = "" if _is_server(where) else f"mlflow ui --backend-store-uri {quote(where)}"
    try:
        yield PlacedLog(log, place=place, command=command)
    except BaseException:
        client.set_terminated(run_id, "FAILED")
        raise
    client.set_terminated(run_id, "FINISHED")


def _find_run(client: Any, run: TrackedRun) -> str:
    """Return MLflow's name of the run: that of before where it is resumed, else of a new one."""
    name = run.place or "fltrain"
    experiment = client.get_experiment_by_name(name)
    number = experiment.experiment_id if experiment else client.create_experiment(name)
    for found in client.search_runs([number], f"tags.`{_ID}` = '{run.id}'"):
        client.update_run(found.info.run_id, "RUNNING")
        return str(found.info.run_id)
    tags = {_ID: run.id, "mlflow.runName": run.name}
    if run.group:
        tags["fltrain.sweep"] = run.group
    created = client.create_run(number, run_name=run.name, tags=tags)
    for key, value in _flatten(run.config).items():
        client.log_param(created.info.run_id, _fit_name(key), value[:_LONGEST])
    return str(created.info.run_id)


def _is_server(where: str) -> bool:
    """Return whether a store is a server's, which shows its runs itself."""
    return where.startswith(("http://", "https://", "databricks"))


def _fit_name(name: str) -> str:
    """Return a name in the letters that MLflow takes."""
    return re.sub(r"[^\w\-. /]", "_", name)


def _flatten(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of nested objects by names with dots."""
    flat: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": text for key, text in _flatten(value).items()}
        else:
            flat[name] = value if isinstance(value, str) else json.dumps(value)
    return flat
