"""FedAvg whose last layer is trained once more, on features drawn like those of the parties.

State: that of FedAvg.
"""

from dataclasses import replace
from typing import Annotated

from ..interface import Algorithm, AtLeast
from .fedavg import ServerLr, fedavg

__all__ = ["ccvr"]

FAMILY = "per-class"


def ccvr(
    features: Annotated[int, "Features that are drawn of each class.", AtLeast(1)] = 2000,
    tuning_epochs: Annotated[int, "Epochs of the last layer on them.", AtLeast(1)] = 10,
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """CCVR. Luo et al., NeurIPS 2021, Equations 3 and 4: FedAvg, and after the last round its last
    layer is calibrated, trained on features drawn from a Gaussian of each class.

    Each party sends of each of its classes how many examples it has, and mean and covariance of
    their features in eval mode. From these the server has mean and covariance of a class over all
    parties, exactly, and draws as many features of each class that somebody holds. The last layer
    goes on from the global one, by SGD at the learning rate of the last round, with the run's
    momentum, weight decay, batch size and loss. Number of features and epochs are those of a
    released implementation that is not the authors'.

    It is measured as calibrated_test_accuracy of the last round; the state is FedAvg's. The same as
    FedAvg with `--calibrate`, which goes with every algorithm that serves one model to all.

    Examples
    --------
    >>> ccvr(features=100).settings
    {'calibrate': 100, 'calibrate_epochs': 10}
    """
    settings = {"calibrate": features, "calibrate_epochs": tuning_epochs}
    return replace(fedavg(server_lr), name="ccvr", features=True, settings=settings)
