"""Flower's simulation: an actor of Ray for each process, its FedAvg, evaluation of the global model at the server with all threads."""

import functools
from collections.abc import Iterable
from pathlib import Path

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from .work import Work, cnn, evaluate, local_epoch

PACKAGE = "flwr"


@functools.cache  # once in each actor
def read(folder: Path) -> Work:
    return Work.read(folder)


def client(folder: Path, threads: int) -> ClientApp:
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(threads)
        work, net, party = read(folder), cnn(), int(context.node_config["partition-id"])
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        torch.manual_seed(
            1000 * int(message.content["config"]["server-round"]) + party
        )  # cnn() has set the seed; orders differ by round
        local_epoch(net, work, party)
        metrics = MetricRecord({"num-examples": len(work.rows[party])})
        return Message(
            RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}),
            reply_to=message,
        )

    return app


class Everybody(FedAvg):
    """FedAvg leaves out a party that failed, and goes on; a round without one is no measurement."""

    def aggregate_train(self, server_round: int, replies: Iterable[Message]):
        replies = list(replies)
        failed = [reply.error.reason for reply in replies if reply.has_error()]
        if failed or len(replies) < self.min_train_nodes:
            raise RuntimeError(
                f"{len(replies) - len(failed)} of {self.min_train_nodes} parties answered {failed[:1]}"
            )
        return super().aggregate_train(server_round, replies)


def server(work: Work, meter) -> ServerApp:
    app, net = ServerApp(), cnn()

    def evaluated(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
        if server_round == 0:  # of the initial weights: the other sides do not
            return None
        meter.trained()
        net.load_state_dict(arrays.to_torch_state_dict())
        accuracy, loss = evaluate(net, work)
        meter.evaluated(accuracy, loss)
        return MetricRecord({"accuracy": accuracy, "loss": loss})

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        torch.set_num_threads(work.processes * work.threads)
        strategy = Everybody(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=len(work.rows),
            min_available_nodes=len(work.rows),
        )
        strategy.start(
            grid,
            ArrayRecord(net.state_dict()),
            work.n_rounds,
            train_config=ConfigRecord(),
            evaluate_fn=evaluated,
        )

    return app


def rounds(work: Work, meter) -> None:
    cores = {
        "client_resources": {"num_cpus": work.threads, "num_gpus": 0.0},
        "init_args": {"num_cpus": work.processes * work.threads},
    }
    run_simulation(
        server(work, meter), client(work.folder, work.threads), len(work.rows), backend_config=cores
    )
