"""FedLab's serial trainer and synchronous server. As they come, momentum leaks from party to party and the mean is plain: both are mended."""

import torch

from .work import BATCH, LR, Work, cnn, evaluate, optimiser, shuffled

try:
    import torchvision  # noqa: F401 - FedLab imports it for data sets that are not used here
except RuntimeError:  # PyPI's build has operators for CUDA alone; beside a CPU build of torch they are absent, and two of their names are missed
    for name in ("nms", "qnms"):
        torch.library.define(
            f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        )

from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.core.standalone import StandalonePipeline
from fedlab.utils import Aggregators, SerializationTool

PACKAGE = "fedlab"


class Parties:
    """FedLab asks it for a party's loader; ours goes over the data in a new order each time."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def get_dataloader(self, party: int, batch_size: int) -> "Parties.Loader":
        return self.Loader(self.work, self.work.rows[party])

    class Loader:
        def __init__(self, work: Work, rows: torch.Tensor) -> None:
            self.work, self.rows = work, rows

        def __iter__(self):
            return shuffled(self.work.x, self.work.y, self.rows)


class Trainer(SGDSerialClientTrainer):
    def train(self, model_parameters, train_loader):
        self.optimizer = optimiser(self._model)
        return [
            *super().train(model_parameters, train_loader),
            torch.tensor(float(len(train_loader.rows))),
        ]


class Server(SyncServerHandler):
    def global_update(self, buffer):
        parameters, sizes = zip(*buffer, strict=True)
        SerializationTool.deserialize_model(
            self._model, Aggregators.fedavg_aggregate(list(parameters), torch.stack(sizes))
        )


def rounds(work: Work, meter) -> None:
    class Pipeline(StandalonePipeline):
        def evaluate(self) -> None:
            meter.trained()
            meter.evaluated(*evaluate(self.handler.model, work))

    trainer = Trainer(cnn(), len(work.rows))
    trainer.setup_dataset(Parties(work))
    trainer.setup_optim(1, BATCH, LR)
    Pipeline(Server(cnn(), work.n_rounds, 1.0), trainer).main()
