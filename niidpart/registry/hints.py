"""Hints in errors: the nearest name, and what the field's other words are called here."""

import difflib
from collections.abc import Iterable

# The field's word -> what it may be called here. For hints alone: no synonym is ever accepted,
# since two names for one thing would make recipes differ that say the same.
SYNONYMS: dict[str, tuple[str, ...]] = {
    # strategies and transforms
    "iid": ("homo",),
    "uniform": ("homo",),
    "homogeneous": ("homo",),
    "random": ("homo",),
    "dirichlet": ("dir",),
    "lda": ("dir",),
    "label-dirichlet": ("dir",),
    "noniid-labeldir": ("dir",),
    "pathological": ("labels", "shards"),
    "label-skew": ("labels", "dir"),
    "iid-diff-quantity": ("quantity",),
    "quantity-skew": ("quantity",),
    "natural": ("group",),
    "writer": ("group",),
    "user": ("group",),
    "feature-skew": ("noise",),
    "gaussian-noise": ("noise",),
    # options of splits
    "alpha": ("beta",),
    "concentration": ("beta",),
    "clients": ("n_parties", "parties"),
    "num-clients": ("n_parties", "parties"),
    "n-clients": ("n_parties", "parties"),
    "num-parties": ("n_parties", "parties"),
    "num-users": ("n_parties", "parties"),
    "num-partitions": ("n_parties", "parties"),
    "parties": ("n_parties",),
    "n-parties": ("parties",),
    "classes": ("k",),
    "classes-per-client": ("k",),
    "classes-per-party": ("k",),
    "num-classes-per-client": ("k",),
    "num-classes-per-partition": ("k",),
    "num-shards-per-client": ("shards",),
    "shards-per-client": ("shards",),
    "min-partition-size": ("min_size",),
    "test-fraction": ("test",),
    "test-size": ("test",),
    "val-fraction": ("val",),
    "val-size": ("val",),
    "random-state": ("seed",),
    "random-seed": ("seed",),
    # settings of runs
    "epochs": ("local_epochs",),
    "num-epochs": ("local_epochs",),
    "local-ep": ("local_epochs",),
    "client-epochs": ("local_epochs",),
    "learning-rate": ("lr",),
    "eta": ("lr",),
    "client-lr": ("lr",),
    "local-lr": ("lr",),
    "server-learning-rate": ("server_lr",),
    "global-lr": ("server_lr",),
    "comm-round": ("rounds",),
    "num-rounds": ("rounds",),
    "global-rounds": ("rounds",),
    "communication-rounds": ("rounds",),
    "participation": ("fraction",),
    "participation-rate": ("fraction",),
    "client-fraction": ("fraction",),
    "fraction-fit": ("fraction",),
    "join-ratio": ("fraction",),
    "frac": ("fraction",),
    "sample-fraction": ("fraction",),
    "clients-per-round": ("cohort_size",),
    "parties-per-round": ("cohort_size",),
    "num-clients-per-round": ("cohort_size",),
    "client-selection": ("cohort",),
    "client-sampling": ("cohort",),
    "client-dropout": ("unavailable",),
    "batch": ("batch_size",),
    "bs": ("batch_size",),
    "local-batch-size": ("batch_size",),
    "decay": ("weight_decay",),
    "wd": ("weight_decay",),
    "optimizer-momentum": ("momentum",),
    "optimiser": ("optimizer",),
    "scheduler": ("lr_schedule",),
    "schedule": ("lr_schedule",),
    "lr-scheduler": ("lr_schedule",),
    "gamma": ("lr_decay",),
    "learning-rate-decay": ("lr_decay",),
    "grad-clip": ("clip_norm",),
    "clip": ("clip_norm",),
    "max-norm": ("clip_norm",),
    "max-grad-norm": ("clip_norm",),
    "accumulation": ("accumulate",),
    "gradient-accumulation-steps": ("accumulate",),
    "smoothing": ("label_smoothing",),
    "log": ("track",),
    "logger": ("track",),
    "wandb": ("track",),
    "tensorboard": ("track",),
    "target-accuracy": ("stop_at",),
    "early-stop": ("stop_at",),
    "proximal-mu": ("mu",),
    # algorithms
    "local": ("solo",),
    "local-only": ("solo",),
    "standalone": ("solo",),
    "central": ("centralised",),
    "centralized": ("centralised",),
    "pooled": ("centralised",),
    "fedopt": ("fedadam", "fedyogi", "fedadagrad"),
    "control-variates": ("scaffold",),
}


# What is asked for in vain -> what to do, where no single name is meant.
ADVICE: dict[str, str] = {
    "server-optimizer": "the server's optimisers are algorithms: fedavgm, fedadam, fedyogi, "
    "fedadagrad; --optimizer is that of the parties",
    "seeds": "give one --seed with --trials T, or several as --seed 0,1,2",
    "resume": "a run goes on by another command: fltrain resume FOLDER",
}
# Of one command alone.
ADVICE_OF: dict[str, dict[str, str]] = {
    "resume": {
        "out": "it goes on in its own folder",
    },
}


def find_advice(name: str, command: str) -> str:
    """Return what to do where an option is not there; "" where there is nothing to say."""
    word = _spell(name).replace("optimiser", "optimizer")
    return ADVICE_OF.get(command, {}).get(word) or ADVICE.get(word, "")


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return the end of an error about a name that is not there.

    Parameters
    ----------
    name : object
        What was asked for.
    names : iterable of str
        What there is.

    Returns
    -------
    str
        The nearest of the names, or what the field's word is called here; then all names.

    Examples
    --------
    >>> did_you_mean("alpha", ["beta", "min_size"])
    "did you mean 'beta'? there are: beta, min_size"
    """
    known = list(names)
    near = find_near(name, known)
    guess = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{guess}there are: {', '.join(known)}"


def find_near(name: object, names: Iterable[str]) -> list[str]:
    """Return the names that a synonym means, else the one that is spelt most alike, or []."""
    asked = str(name)  # a dict of options may have any keys
    by_spelling = {_spell(known): known for known in names}
    wanted = [_spell(synonym) for synonym in SYNONYMS.get(_spell(asked), ())]
    meant = [by_spelling[spelling] for spelling in wanted if spelling in by_spelling]
    if meant:
        return meant
    return difflib.get_close_matches(asked, list(by_spelling.values()), n=1, cutoff=0.5)


def _spell(name: str) -> str:
    """Return a name as the command line spells it: python says n_parties, a command n-parties."""
    return name.strip("-").lower().replace("_", "-")
