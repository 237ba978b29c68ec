"""Algorithms written a second time, from their papers' equations alone: plain vectors, autograd and loops.

A federation (`Federation`) is what they run on: gradients of batches, in the order in which a run takes them.
"""

from types import SimpleNamespace

import torch
from torch import nn

from fltrain.algorithms import build
from fltrain.draws import key
from fltrain.engine.batches import iterate_batches
from fltrain.settings import Settings

from ._cells import prepare
from ._cohorts import sample


class Federation:
    """Parties with a model of which weights are a vector. seed 0; no decay but that of the settings."""

    def __init__(self, split, data, module, rounds, algorithm="fedavg", **settings):
        self.module, self.rounds = module, rounds
        self.settings = Settings(engine="looped", device="cpu", **settings)
        cell = prepare(split, data, build(algorithm), module, self.settings)
        self.examples = cell.data.train
        sizes = [self.examples.size(p) for p in range(cell.data.n_parties)]
        self.n = torch.tensor(sizes).double()
        self.start = torch.cat([p.detach().reshape(-1) for p in module.parameters()])

    def cohort(self, round):
        return sample(len(self.n), self.settings.fraction, 0, round).tolist()

    def batches(self, round, party):
        stream = key(0, "job", round, party)
        return list(iterate_batches(self.examples, party, round, stream, self.settings))

    def tree(self, w):
        names, parameters = zip(*self.module.named_parameters(), strict=True)
        parts = w.split([p.numel() for p in parameters])
        return {n: part.view(p.shape) for n, part, p in zip(names, parts, parameters, strict=True)}

    def gradient(self, w, batch):
        w = w.detach().requires_grad_()
        logits = torch.func.functional_call(self.module, self.tree(w), batch.x)
        return torch.autograd.grad(nn.functional.cross_entropy(logits, batch.y), w)[0]

    def train(self, w, round, party, direct, behind=0.0):
        """y after one local training from w; direct(y, batch) -> what is followed; behind: added behind the momentum."""
        lr, rho, decay = self.settings.lr, self.settings.momentum, self.settings.weight_decay
        y, velocity = w, torch.zeros_like(w)
        for batch in self.batches(round, party):
            velocity = rho * velocity + direct(y, batch) + decay * y
            y = y - lr * (velocity + behind)
        return y

    def effective_steps(self, round, party):
        velocity = moved = 0.0
        for _ in self.batches(round, party):
            velocity = self.settings.momentum * velocity + 1
            moved += velocity
        return moved

    def average(self, values, uniform=False):
        """The mean of {party: value} by examples, or alike."""
        weights = {p: 1.0 if uniform else float(self.n[p]) for p in values}
        return sum(weights[p] * v for p, v in values.items()) / sum(weights.values())

    def uphill(self, y, batch, rho, sizes=None):
        """The gradient of SAM, or of ASAM; of no ascent where rho is 0."""
        g = self.gradient(y, batch)
        if rho == 0:
            return g
        t = torch.ones_like(y) if sizes is None else sizes(y)
        return self.gradient(y + rho * t * t * g / (t * g).norm(), batch)


def gap(name, federation, module, **options):
    """How far a model is at most from what the algorithm of that name here gives after the rounds of the federation."""
    w = globals()[name](federation, federation.rounds, **options)
    found = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    return float((found - w).abs().max())


def fedcm(f, rounds, alpha=0.1, rho=0.0, uniform=False):
    """FedCM; with rho MoFedSAM."""
    w, delta = f.start, torch.zeros_like(f.start)
    for round in range(1, rounds + 1):

        def direct(y, batch, delta=delta):
            return alpha * f.uphill(y, batch, rho) + (1 - alpha) * delta

        cohort = f.cohort(round)
        mean = f.average({p: f.train(w, round, p, direct) for p in cohort}, uniform)
        steps = f.average({p: f.effective_steps(round, p) for p in cohort}, uniform)
        w, delta = mean, (w - mean) / (f.settings.lr * steps)
    return w


def fedacg(f, rounds, server_momentum=0.85, beta=0.001):
    w, m = f.start, torch.zeros_like(f.start)
    for round in range(1, rounds + 1):
        sent = w + server_momentum * m

        def direct(y, batch, sent=sent):
            return f.gradient(y, batch) + 2 * beta * (y - sent)

        ys = {p: f.train(sent, round, p, direct) for p in f.cohort(round)}
        m = server_momentum * m + f.average(ys) - sent
        w = w + m
    return w


def fedexp(f, rounds, epsilon=1e-3, served="average"):
    w = before = f.start
    for round in range(1, rounds + 1):
        moves = {p: f.train(w, round, p, f.gradient) - w for p in f.cohort(round)}
        d = f.average(moves)
        squares = f.average({p: move @ move for p, move in moves.items()})
        eta = max(1.0, float(squares / (2 * (d @ d + epsilon))))
        before, w = w, w + eta * d
    return w if served == "last" else (w + before) / 2


def fedsam(f, rounds, rho=0.05, eta=None):
    """FedSAM; with eta FedASAM, by |w| + eta of what is called weight."""
    is_weight = {name: torch.full_like(p, "weight" in name) for name, p in f.tree(f.start).items()}
    mask = torch.cat([leaf.reshape(-1) for leaf in is_weight.values()])

    def sizes(y):
        return torch.where(mask > 0, y.abs() + eta, 1.0)

    def direct(y, batch):
        return f.uphill(y, batch, rho, None if eta is None else sizes)

    w = f.start
    for round in range(1, rounds + 1):
        w = f.average({p: f.train(w, round, p, direct) for p in f.cohort(round)})
    return w


def fedlesam(f, rounds, rho=0.1, before="own"):
    w, received, last = f.start, {}, None
    for round in range(1, rounds + 1):
        ys = {}
        for p in f.cohort(round):
            old = received.get(p) if before == "own" else last
            e = torch.zeros_like(w) if old is None else rho * (old - w) / (old - w).norm()
            ys[p] = f.train(w, round, p, lambda y, batch, e=e: f.gradient(y + e, batch))
            received[p] = w
        last, w = w, f.average(ys)
    return w


def fedspeed(f, rounds, rho=0.1, lam=10.0, mix=1.0, duals="cohort"):
    """In the paper's own variables: corrections c_i = -h_i / lam, and x_i = y_i - lam c_i uploaded."""
    w, c = f.start, {p: torch.zeros_like(f.start) for p in range(len(f.n))}
    for round in range(1, rounds + 1):
        ys = {}
        for p in f.cohort(round):

            def direct(y, batch, p=p, w=w):
                g = (1 - mix) * f.gradient(y, batch) + mix * f.uphill(y, batch, rho)
                return g - c[p] + (y - w) / lam

            ys[p] = f.train(w, round, p, direct)
            c[p] = c[p] - (ys[p] - w) / lam
        if duals == "cohort":
            w = f.average({p: y - lam * c[p] for p, y in ys.items()}, uniform=True)
        else:
            w = f.average(ys, uniform=True) - lam * sum(c.values()) / len(c)
    return w


def fedsmoo(f, rounds, rho=0.1, lam=10.0):
    zero = torch.zeros_like(f.start)
    w, s, c = f.start, zero, dict.fromkeys(range(len(f.n)), zero)
    mu = dict.fromkeys(c, zero)
    for round in range(1, rounds + 1):
        ys = {}
        for p in f.cohort(round):

            def direct(y, batch, p=p, w=w, s=s):
                d = f.gradient(y, batch) - mu[p] - s
                e = rho * d / d.norm()
                mu[p] = mu[p] + e - s
                return f.gradient(y + e, batch) - c[p] + (y - w) / lam

            ys[p] = f.train(w, round, p, direct)
            c[p] = c[p] - (ys[p] - w) / lam
        agreed = f.average({p: mu[p] for p in ys}, uniform=True)
        s = rho * agreed / agreed.norm()
        w = f.average(ys, uniform=True) - lam * sum(c.values()) / len(c)
    return w


def fedgloss(f, rounds, rho=0.15, local_rho=0.15, lam=10.0):
    """The printed algorithm line by line, with its beta and its sigmas."""
    server = SimpleNamespace(w=f.start, sigma=torch.zeros_like(f.start), d=None)
    sigma = {p: torch.zeros_like(f.start) for p in range(len(f.n))}
    for round in range(1, rounds + 1):
        d = server.d
        sent = server.w if d is None else server.w + rho * d / d.norm()
        ys = {}
        for p in f.cohort(round):

            def direct(y, batch, p=p, sent=sent):
                return f.uphill(y, batch, local_rho) - sigma[p] + (y - sent) / lam

            ys[p] = f.train(sent, round, p, direct)
            sigma[p] = sigma[p] - (ys[p] - sent) / lam
        server.sigma = server.sigma - sum(y - sent for y in ys.values()) / (lam * len(sigma))
        server.d = f.average({p: sent - y for p, y in ys.items()})
        server.w = server.w - server.d - lam * server.sigma
    return server.w
