"""Apple's pfl-research. It does not shuffle, so the parties' data sets do; its own evaluation of the global model, over all its processes.

Several processes are its own way to use cores (torch.distributed with gloo), parties dealt out by their sizes. In its first round it also evaluates
every party before and after training, which cannot be turned off.
"""

import os
import subprocess
import sys

import torch
from torch import nn

from .work import BATCH, LR, MOMENTUM, TEST_BATCH, Work, cnn, shuffled

PACKAGE = "pfl"
RANK = "PFL_WORKER_RANK"


def rounds(work: Work, meter) -> None:
    others = []
    if work.processes > 1 and RANK not in os.environ:
        os.environ["PFL_WORKER_ADDRESSES"] = ",".join(
            f"127.0.0.1:{meter.port + i}" for i in range(work.processes)
        )
        others = [
            subprocess.Popen([sys.executable, *sys.argv], env=os.environ | {RANK: str(i)})
            for i in range(1, work.processes)
        ]
        os.environ[RANK] = "0"
    _train(work, meter)  # imports pfl, which connects the processes as it is imported
    for process in others:
        if process.wait():
            raise RuntimeError(f"a pfl process ended with {process.returncode}")


def _train(work: Work, meter) -> None:
    import numpy as np
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.central_evaluation import CentralEvaluationCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    class Shuffled(Dataset):
        def iter(self, batch_size):
            x, y = self.raw_data
            return shuffled(x, y, torch.arange(len(y)))

    class Net(nn.Sequential):
        def loss(self, x, y):
            return nn.functional.cross_entropy(self(x), y)

        @torch.no_grad()
        def metrics(self, x, y):
            out = self(x)
            right, loss = (
                int((out.argmax(1) == y).sum()),
                float(nn.functional.cross_entropy(out, y, reduction="sum")),
            )
            return {"accuracy": Weighted(right, len(y)), "loss": Weighted(loss, len(y))}

    class Evaluation(CentralEvaluationCallback):
        def on_train_begin(self, *, model):
            return Metrics()

        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            meter.trained()
            stop, metrics = self._eval(model)
            found = {str(name): value for name, value in metrics}
            meter.evaluated(
                *(found[f"Central val | {name}"].overall_value for name in ("accuracy", "loss"))
            )
            return stop, metrics

    np.random.seed(0)  # noqa: NPY002 - pfl draws from it, and every process has to draw the same cohorts
    users = {
        str(party): Shuffled((work.x[rows], work.y[rows]), user_id=str(party))
        for party, rows in enumerate(work.rows)
    }
    sizes = {user: len(data) for user, data in users.items()} if work.processes > 1 else None
    parties = FederatedDataset(
        users.__getitem__, get_user_sampler("minimize_reuse", list(users)), user_id_to_weight=sizes
    )
    net = Net(*cnn())
    model = PyTorchModel(
        net,
        lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=MOMENTUM),
        torch.optim.SGD(net.parameters(), lr=1.0),
    )
    evaluation = NNEvalHyperParams(local_batch_size=TEST_BATCH)
    FederatedAveraging().run(
        NNAlgorithmParams(
            work.n_rounds,
            evaluation_frequency=work.n_rounds,
            train_cohort_size=len(users),
            val_cohort_size=0,
        ),
        SimulatedBackend(parties, parties, postprocessors=[WeightByDatapoints()]),
        model,
        NNTrainHyperParams(local_batch_size=BATCH, local_num_epochs=1, local_learning_rate=LR),
        evaluation,
        [Evaluation(Dataset((work.x_test, work.y_test)), evaluation)],
        send_metrics_to_platform=False,
    )
