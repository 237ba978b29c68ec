"""Runs a rival's own script, unchanged, in the rival's environment:

    launch.py SCRIPT [ARGUMENTS]

Three things around it differ from what its authors have, none in its code: torchvision takes the
files of CIFAR-10 that lie where it would download them to, though their pickles name no image files
and so have other checksums; beside a CPU build of torch, torchvision's missing operators for CUDA
are declared; and what the script prints is not held back.
"""

import runpy
import sys

import torch


def _load_torchvision() -> None:
    """Import torchvision, whose build from PyPI has operators for CUDA alone."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in ("nms", "qnms"):
            boxes = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", boxes)


def _trust_files() -> None:
    """Let torchvision's CIFAR-10 look for its files without comparing their checksums."""
    from torchvision.datasets import CIFAR10

    for files in (CIFAR10.train_list, CIFAR10.test_list):
        files[:] = [[name, None] for name, _ in files]
    CIFAR10.meta["md5"] = None


_load_torchvision()
_trust_files()
if __name__ == "__main__":
    script, *sys.argv = sys.argv[1], *sys.argv[1:]
    sys.path[0] = script.rpartition("/")[0]
    runpy.run_path(script, run_name="__main__")
