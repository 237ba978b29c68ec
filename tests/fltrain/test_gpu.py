"""What holds on a GPU: `make test-gpu`. Where there is none these are skipped.

With NIIDPART_TEST_DEVICE=cpu they run on a CPU, which says that the tests themselves are in order.
"""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import fltrain
import niidpart
from fltrain import tree
from fltrain.algorithms import ALGORITHMS
from fltrain.engine.diverged import is_finite
from fltrain.engine.stacked.stackable import why_not_stackable
from fltrain.models import MODELS, create

from ._cells import add_to
from ._stacked import PARTS, USUAL, cell_of, network, pairs
from ._variants import find_declared

DEVICE = os.environ.get("NIIDPART_TEST_DEVICE", "cuda")
pytestmark = [
    pytest.mark.skipif(
        DEVICE == "cuda" and not torch.cuda.is_available(),
        reason="no CUDA device; make test-gpu runs these where there is one",
    ),
    pytest.mark.filterwarnings("ignore:fraction .* does nothing here"),
    # torch's own, once in a process, and of nothing that is asked for here
    pytest.mark.filterwarnings("ignore:Please use the new API settings to control TF32"),
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS"),
]
ENGINES = ["looped", "stacked", "graph"]
BOUNDS = {"float64": 1e-10, "float32": 1e-4}  # relative to the largest number of a leaf
# FedAdagrad's server divides a mean change of the models by a root of about 1e-2: rounding grows by as much.
# FedFomo's gains are divided by their sum, in which they may all but cancel.
LOOSE = {"fedadagrad": {"float32": 1e-2}, "fedfomo": {"float64": 1e-8, "float32": 1.0}}


def differ(a, b):
    """The largest difference of two states, of each leaf relative to its largest number."""
    found = [0.0]
    for part in PARTS:
        for x, y in pairs(a, b, part):
            x, y = x.double().cpu(), y.double().cpu()
            found.append(float((x - y).abs().max() / y.abs().max().clamp(min=1e-3)))
    return max(found)


@pytest.fixture(scope="module")
def references():
    """What was trained on the CPU, once for all engines."""
    return {}


@pytest.fixture
def beside_the_cpu(references):
    """beside_the_cpu(split, data, engine, name, ...): how far a round is from one on the CPU."""

    def compare(split, data, engine, name, **options):
        options = {"threads": 1, **options}
        if name not in references:
            given = options | {"model": options["model"]()}
            references[name] = fltrain.run(split, data, device="cpu", engine="looped", **given)
        given = options | {"model": options["model"](), "device": DEVICE, "engine": engine}
        done = fltrain.run(split, data, **given)
        assert is_finite(done.state.models)
        return differ(done.state, references[name].state)

    return compare


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_every_algorithm_is_that_of_the_cpu(
    table_split, table, beside_the_cpu, name, engine, precision
):
    """A round of two epochs: unequal parties, short batches, momentum, decay, dropout."""
    options = find_declared(name, "FEW_ROUNDS", {}) | find_declared(name, "EXACT", {})
    algorithm = fltrain.algorithms.build(name, **options)
    is_double = precision == "float64"
    settings = add_to(USUAL, {"rounds": 1, "algorithm": algorithm}) | algorithm.settings
    settings["model"] = lambda: network(double=is_double)
    far = beside_the_cpu(table_split, table, engine, (name, precision), **settings)
    assert far < LOOSE.get(name, {}).get(precision, BOUNDS[precision])


@pytest.fixture(scope="module")
def pictures():
    """20 images of 32 x 32 x 3 bytes in 4 classes, dealt to two parties."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 32, 32, 3), np.uint8)
    data = niidpart.from_arrays(images, np.arange(20) % 4, images[:8], np.arange(8) % 4)
    return niidpart.make(data, "homo", n_parties=2), data


def to_double(module, inputs):
    return (inputs[0].double(), *inputs[1:])


def make_double(name):
    """A model in float64, in which a ReLU is not within rounding of switching."""
    shape, n_classes = ((6,), 5) if name == "lstm" else ((3, 32, 32), 4)
    model = create(name, shape, n_classes, seed=0).double()
    model.register_forward_pre_hook(to_double)
    return model


def can_stack(split, data, name):
    return not why_not_stackable(cell_of(split, data, model=make_double(name)), "grouped")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MODELS.names())
def test_every_model_is_that_of_the_cpu(pictures, text, text_split, beside_the_cpu, name, engine):
    split, data = (text_split, text) if name == "lstm" else pictures
    options = {"model": lambda: make_double(name), "rounds": 1, "local_steps": 2, "batch_size": 5}
    if engine != "looped" and not can_stack(split, data, name):
        with pytest.raises(niidpart.errors.UsageError, match="cannot be stacked"):
            beside_the_cpu(split, data, engine, name, lr=0.01, **options)
        return
    far = beside_the_cpu(split, data, engine, name, lr=0.01, **options)
    assert far < BOUNDS["float64"]


@pytest.mark.parametrize("engine", ENGINES)
def test_two_runs_are_equal_bit_for_bit(images, dealt, same_state, engine):
    split = dealt(images, np.repeat([0, 1, 2], [24, 16, 10]))
    options = {"device": DEVICE, "engine": engine, "model": "cnn", "rounds": 2, "local_epochs": 2}
    a, b = (
        fltrain.run(split, images, algorithm="scaffold", batch_size=8, **options) for _ in range(2)
    )
    assert a.history == b.history
    assert same_state(a.state, b.state)


# A run in a process of its own. Arguments: folder, device, engine, the round after which it is killed.
PROGRAM = """
import os, signal, sys
import fltrain
folder, device, engine, last = sys.argv[1:]

def progress(event):
    if isinstance(event, fltrain.JobDone) and event.round == int(last) and event.job == 1:
        os.kill(os.getpid(), signal.SIGKILL)

options = {"model": "hidden200", "rounds": 3, "local_epochs": 1, "algorithm": "scaffold"}
options |= {"device": device, "engine": engine, "checkpoint_every": 1, "progress": progress}
fltrain.run(f"{folder}/split.h5", out=f"{folder}/run", **options)
"""


@pytest.fixture
def start(tmp_path):
    """start(name, engine, last): a process that runs in a folder of that name, with the digits."""

    def begin(name, engine, last=0):
        folder = tmp_path / name
        folder.mkdir()
        data = niidpart.load("digits")
        niidpart.write(
            niidpart.make(data, "dir", n_parties=5, beta=0.5, seed=0), folder / "split.h5"
        )
        command = [sys.executable, "-c", PROGRAM, str(folder), DEVICE, engine, str(last)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    return begin


def finish(process):
    _, said = process.communicate(timeout=600)
    return process.returncode, said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_run_is_resumed_to_the_same_bytes(start, outcome, tmp_path, engine):
    code, said = finish(start("whole", engine))
    assert code == 0, said
    code, said = finish(start("killed", engine, last=2))
    assert code == -signal.SIGKILL, said
    fltrain.resume(tmp_path / "killed" / "run")
    assert outcome(tmp_path / "killed" / "run") == outcome(tmp_path / "whole" / "run")


@pytest.mark.parametrize("engine", ["stacked", "graph"])
def test_two_processes_share_a_device(start, outcome, tmp_path, engine):
    both = [start(name, engine) for name in ("one", "other")]
    for process in both:
        code, said = finish(process)
        assert code == 0, said
    assert outcome(tmp_path / "one" / "run") == outcome(tmp_path / "other" / "run")


@pytest.mark.parametrize("engine", ENGINES)
def test_out_of_memory_says_which_option_helps(images, dealt, engine):
    """Half a gigabyte of the device: fewer jobs at once, or smaller batches."""
    if DEVICE != "cuda":
        pytest.skip(
            "memory of a CPU is the system's; tests/fltrain/test_stacked_limits.py raises it"
        )
    split = dealt(images, np.repeat([0, 1], 25))
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((1 << 29) / total)
    try:
        with pytest.raises(niidpart.errors.UsageError, match=r"out of memory: .*--batch-size"):
            fltrain.run(split, images, device="cuda", engine=engine, model="resnet50", rounds=1)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_chunk_that_fits_gives_the_same(images, dealt):
    """What `--memory` cuts is equal to rounding."""
    split = dealt(images, np.repeat([0, 1, 2], [24, 16, 10]))
    options = {"device": DEVICE, "engine": "graph", "rounds": 1, "batch_size": 8}
    states = []
    for memory in (1.0, 0.02):
        done = fltrain.run(split, images, model=make_small(), memory=memory, **options)
        states.append(done.state)
    assert differ(*states) < BOUNDS["float64"]
    assert tree.leaves(states[0].models)


def make_small():
    model = create("cnn", (1, 28, 28), 10, seed=0).double()
    model.register_forward_pre_hook(to_double)
    return model
