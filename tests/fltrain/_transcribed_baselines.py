"""The algorithms that others are compared with, written a second time: plain vectors and loops (`_transcribed.py`)."""

import torch

from ._transcribed_mixtures import full_gradient


def fedavg(f, rounds, server_lr=1.0):
    w = f.start
    for round in range(1, rounds + 1):
        ys = {p: f.train(w, round, p, f.gradient) for p in f.cohort(round)}
        w = w + server_lr * (f.average(ys) - w)
    return w


def fedprox(f, rounds, mu):
    w = f.start
    for round in range(1, rounds + 1):

        def direct(y, batch, w=w):
            return f.gradient(y, batch) + mu * (y - w)

        w = f.average({p: f.train(w, round, p, direct) for p in f.cohort(round)})
    return w


def fednova(f, rounds):
    """tau_eff sum_i p_i d_i, where d_i is what a party moved over its a_i."""
    w = f.start
    for round in range(1, rounds + 1):
        cohort = f.cohort(round)
        a = {p: f.effective_steps(round, p) for p in cohort}
        d = {p: (w - f.train(w, round, p, f.gradient)) / a[p] for p in cohort}
        w = w - f.average(a) * f.average(d)
    return w


def scaffold(f, rounds, option, correction):
    """post: c - c_i is added behind the momentum, and controls are on the scale of steps."""
    zero = torch.zeros_like(f.start)
    w, c, own = f.start, zero, dict.fromkeys(range(len(f.n)), zero)
    for round in range(1, rounds + 1):
        ys, change = {}, zero
        for p in f.cohort(round):
            lead = c - own[p]
            n_steps, a = len(f.batches(round, p)), f.effective_steps(round, p)
            if correction == "grad":
                ys[p] = f.train(
                    w, round, p, lambda y, batch, lead=lead: f.gradient(y, batch) + lead
                )
                on_steps, scale = a, 1
            else:
                ys[p] = f.train(w, round, p, f.gradient, behind=lead)
                on_steps, scale = n_steps, a / n_steps
            if option == "i":
                new = scale * full_gradient(f, w, p)
            else:
                new = own[p] - c + (w - ys[p]) / (f.settings.lr * on_steps)
            change, own[p] = change + new - own[p], new
        w, c = f.average(ys), c + change / len(own)
    return w


def solo(f, rounds):
    """{party: its model}"""
    own = dict.fromkeys(range(len(f.n)), f.start)
    for round in range(1, rounds + 1):
        for p in f.cohort(round):
            own[p] = f.train(own[p], round, p, f.gradient)
    return own


def ditto(f, rounds, lam):
    """(the global model, {party: its own})"""
    w, own = f.start, dict.fromkeys(range(len(f.n)), f.start)
    for round in range(1, rounds + 1):

        def direct(v, batch, w=w):
            return f.gradient(v, batch) + lam * (v - w)

        ys = {}
        for p in f.cohort(round):
            ys[p] = f.train(w, round, p, f.gradient)
            own[p] = f.train(own[p], round, p, direct)
        w = f.average(ys)
    return w, own
