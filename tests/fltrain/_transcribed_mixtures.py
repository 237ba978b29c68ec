"""Algorithms that mix models, adapt them or weigh parties by losses, written a second time: plain vectors and loops.

A `Federation` (`_transcribed.py`) has the batches of a run. No decay and no momentum but what a function names.
"""

from itertools import pairwise

import numpy as np
import torch
from torch import nn


def loss_of(f, w, party):
    """The mean loss over all examples of a party."""
    start, end = f.examples.indptr[party], f.examples.indptr[party + 1]
    x, y = f.examples.inputs(slice(start, end)), f.examples.y[start:end]
    logits = torch.func.functional_call(f.module, f.tree(w), x)
    return float(nn.functional.cross_entropy(logits, y).detach())


def cut(batch, n_parts):
    """The parts of a batch; of a small one all of it for each."""
    n = len(batch.y)
    if n < 2 * n_parts:
        return [batch] * n_parts
    edges = [n * part // n_parts for part in range(n_parts + 1)]
    return [batch._replace(x=batch.x[a:b], y=batch.y[a:b]) for a, b in pairwise(edges)]


def per_fedavg(f, rounds, alpha=0.01, delta=None):
    """First order; with delta hessian-free."""
    w = f.start
    for round in range(1, rounds + 1):

        def direct(y, batch):
            first, second, *third = cut(batch, 2 if delta is None else 3)
            v = f.gradient(y - alpha * f.gradient(y, first), second)
            if delta is None:
                return v
            ahead, behind = (f.gradient(y + d * v, third[0]) for d in (delta, -delta))
            return v - alpha * (ahead - behind) / (2 * delta)

        w = f.average({p: f.train(w, round, p, direct) for p in f.cohort(round)})
    return w


def apfl(f, rounds, alpha=0.5, alpha_lr=0.0):
    """(the global model, {party: its mixture with that, its alpha})."""
    lr, rho, decay = f.settings.lr, f.settings.momentum, f.settings.weight_decay
    w, own = f.start, dict.fromkeys(range(len(f.n)), f.start)
    share = dict.fromkeys(own, alpha)
    for round in range(1, rounds + 1):
        ys = {}
        for p in f.cohort(round):
            y, v, a = w, own[p], share[p]
            of_y, of_v = torch.zeros_like(w), torch.zeros_like(w)
            for number, batch in enumerate(f.batches(round, p)):
                at_y, at_mixture = f.gradient(y, batch), f.gradient(a * v + (1 - a) * y, batch)
                of_y = rho * of_y + at_y + decay * y
                of_v = rho * of_v + a * at_mixture + decay * v
                if number == 0:
                    a = min(max(a - alpha_lr * float((v - y) @ at_mixture), 0.0), 1.0)
                y, v = y - lr * of_y, v - lr * of_v
            ys[p], own[p], share[p] = y, v, a
        w = f.average(ys)
    return w, {p: share[p] * v + (1 - share[p]) * w for p, v in own.items()}, share


def q_fedavg(f, rounds, q):
    """Weighed by examples, in the paper's own numbers: L = 1 / lr."""
    w, lipschitz = f.start, 1 / f.settings.lr
    for round in range(1, rounds + 1):
        updates, steps = {}, {}
        for p in f.cohort(round):
            loss = loss_of(f, w, p) + 1e-10
            delta = lipschitz * (w - f.train(w, round, p, f.gradient))
            updates[p] = loss**q * delta
            steps[p] = q * loss ** (q - 1) * float(delta @ delta) + lipschitz * loss**q
        w = w - f.average(updates) / f.average(steps)
    return w


def ifca(f, rounds, starts):
    """(the models, the one that each party trained last)."""
    models, chosen = list(starts), {}
    for round in range(1, rounds + 1):
        ys = {}
        for p in f.cohort(round):
            chosen[p] = int(np.argmin([loss_of(f, w, p) for w in models]))
            ys[p] = f.train(models[chosen[p]], round, p, f.gradient)
        for m in range(len(models)):
            its = {p: y for p, y in ys.items() if chosen[p] == m}
            models[m] = f.average(its) if its else models[m]
    return models, chosen


def project(values):
    """Onto the simplex, by bisection on what all are lowered by."""
    low, high = float(values.min()) - 1, float(values.max())
    for _ in range(200):
        middle = (low + high) / 2
        total = float((values - middle).clamp(min=0).sum())
        low, high = (middle, high) if total > 1 else (low, middle)
    return (values - low).clamp(min=0)


def afl(f, rounds, weights_lr=0.1):
    """(the last model, the mean of all, the weights)."""
    w, means = f.start, []
    weights = torch.full((len(f.n),), 1 / len(f.n), dtype=torch.float64)
    for round in range(1, rounds + 1):
        cohort = f.cohort(round)
        losses = {p: loss_of(f, w, p) for p in cohort}
        ys = {p: f.train(w, round, p, f.gradient) for p in cohort}
        of_cohort = sum(float(weights[p]) for p in cohort)
        w = sum(float(weights[p]) / of_cohort * y for p, y in ys.items())
        for p, loss in losses.items():
            weights[p] += weights_lr * len(f.n) / len(cohort) * loss
        weights = project(weights)
        means.append(w)
    return w, sum(means) / len(means), weights


def fedala(f, rounds, mixed, mixing_steps=1, first_steps=20, threshold=0.1, mixing_lr=1.0):
    """mixed: the places of the mixed layers in the vector. The share is 1, so that nothing is drawn."""
    w, own = f.start, dict.fromkeys(range(len(f.n)), f.start)
    mixing = dict.fromkeys(own, torch.ones_like(f.start))
    has_learned = set()
    for round in range(1, rounds + 1):
        ys = {}
        for p in f.cohort(round):
            way, by, losses = w - own[p], mixing[p], []
            while round > 1:
                at = w - torch.where(mixed, (1 - by) * way, 0.0)
                by = torch.where(
                    mixed, (by - mixing_lr * full_gradient(f, at, p) * way).clamp(0, 1), by
                )
                losses.append(loss_of(f, at, p))
                settled = len(losses) > 10 and np.std(losses[-10:]) < threshold
                is_first = p not in has_learned
                if len(losses) == (first_steps if is_first else mixing_steps) or (
                    is_first and settled
                ):
                    has_learned.add(p)
                    break
            mixing[p] = by
            start = w - torch.where(mixed, (1 - by) * way, 0.0)
            ys[p] = own[p] = f.train(start, round, p, f.gradient)
        w = f.average(ys)
    return w, own, mixing


def full_gradient(f, w, party):
    start, end = f.examples.indptr[party], f.examples.indptr[party + 1]
    x, y = f.examples.inputs(slice(start, end)), f.examples.y[start:end]
    w = w.detach().requires_grad_()
    logits = torch.func.functional_call(f.module, f.tree(w), x)
    return torch.autograd.grad(nn.functional.cross_entropy(logits, y), w)[0]


def fedfomo(f, rounds, val, norm=2):
    """Every party of the cohort hears of all others in it. val(w, party): its loss there."""
    theta = dict.fromkeys(range(len(f.n)), f.start)
    for round in range(1, rounds + 1):
        cohort = f.cohort(round)
        trained = {p: f.train(theta[p], round, p, f.gradient) for p in cohort}
        for p in cohort:
            gains = {}
            for n, y in trained.items():
                apart = float(torch.linalg.vector_norm(y - theta[p], norm))
                gains[n] = (val(theta[p], p) - val(y, p)) / apart
            total = sum(max(gain, 0) for gain in gains.values())
            if total > 0:
                ways = [max(gain, 0) / total * (trained[n] - theta[p]) for n, gain in gains.items()]
                theta[p] = theta[p] + sum(ways)
    return theta
