"""torchvision, where it is installed."""

import os

import pytest
import torch

SHIM = []  # kept: the operators go with their library


def import_torchvision():
    """torchvision, or a skip that says why not. A build for another torch lacks its C++ operators; their names are enough for the models."""
    try:
        try:
            import torchvision
        except RuntimeError as error:
            if "torchvision::nms" not in str(error):
                raise
            # SHIM, in these tests only: declare the two operators that torchvision looks up while it is imported; they cannot be called.
            SHIM.append(torch.library.Library("torchvision", "DEF"))
            for name in ("nms", "qnms"):
                SHIM[-1].define(
                    f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                )
            import torchvision
    except (ImportError, RuntimeError, OSError) as error:
        if os.environ.get("NIIDPART_TEST_TORCHVISION"):
            raise  # CI has installed it, so that these tests run somewhere
        pytest.skip(f"torchvision does not import here: {error}")
    return torchvision
