"""A user's script, as `test_users_script.py` has the type checker and python read it."""

import sys

import fltrain
import niidpart

data = niidpart.load("digits")
split = niidpart.make(data, "dir", beta=0.5, n_parties=5)
niidpart.write(split, sys.argv[1])
with niidpart.open(sys.argv[1]) as opened:
    n_parties: int = opened.n_parties

average: fltrain.Algorithm = fltrain.algorithms.fedavg(server_lr=0.5)
controlled: fltrain.Algorithm = fltrain.algorithms.scaffold(option="i")
runs: list[fltrain.Run] = [
    fltrain.run(sys.argv[1], algorithm=algorithm, rounds=3, local_epochs=1)
    for algorithm in (average, controlled)
]
print(n_parties, *(run.algorithm.name for run in runs))
print(*(run.history[-1]["test_accuracy"] for run in runs))
