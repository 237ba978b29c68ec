"""Packages that a part of niidpart needs and the rest does not, and how to get one."""

# Module that may be missing -> the package that has it, and the extra of pyproject.toml.
_PACKAGES = {
    "torch": ("torch", "train"),
    "safetensors": ("safetensors", "train"),
    "torchvision": ("torchvision", "vision"),
    "matplotlib": ("matplotlib", "plot"),
    "statsmodels": ("statsmodels", "evidence"),
    "jinja2": ("jinja2", "report"),
    "datasets": ("datasets", "hub"),
    "huggingface_hub": ("huggingface_hub", "hub"),
    "yaml": ("pyyaml", "hub"),
    "sklearn": ("scikit-learn", "data"),
    "pyarrow": ("pyarrow", "data"),
    "PIL": ("pillow", "data"),
    "pooch": ("pooch", "get"),
    "tensorboard": ("tensorboard", "track"),
    "wandb": ("wandb", "track"),
    "mlflow": ("mlflow-skinny", "track"),
    "ray": ("ray", "ray"),
    "dp_accounting": ("dp-accounting", "privacy"),
}


def advise_on_missing(module: str) -> str:
    """Return how to get a module that is not installed; "" for one that is not ours to advise on.

    By the package's own name: that is right wherever niidpart itself came from, a clone, a wheel or
    an index.
    """
    package, extra = _PACKAGES.get(module.partition(".")[0], ("", ""))
    if not package:
        return ""
    return f"pip install {package} (niidpart's extra [{extra}] has all that goes with it)"
