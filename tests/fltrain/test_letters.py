"""A model that reads letters: what it computes, which engines train it, and what it refuses."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import fltrain
import niidpart
from fltrain.engine.cost import count_cost
from fltrain.inputs.gathering import load_federated
from fltrain.models import create, default
from fltrain.tasks.model_task import ModelTask
from niidpart.errors import UsageError

N_LETTERS, LENGTH = 5, 6  # of the fixture `text`


@pytest.fixture(scope="module")
def train_letters(train, text, text_split):
    """train_letters(...): a short run of the model of letters."""

    def run(**options):
        return train(text_split, text, model="lstm", batch_size=4, **options)

    return run


def recur(x, layer):
    """The outputs of a layer by the equations of Hochreiter and Schmidhuber, with a forget gate."""
    h = c = torch.zeros(len(x), layer.hidden_size, dtype=x.dtype)
    outputs = []
    for letter in x.unbind(1):
        gates = F.linear(letter, layer.weight_ih_l0, layer.bias_ih_l0)
        gates = gates + F.linear(h, layer.weight_hh_l0, layer.bias_hh_l0)
        taken, kept, cell, shown = gates.chunk(4, dim=1)
        c = torch.sigmoid(kept) * c + torch.sigmoid(taken) * torch.tanh(cell)
        h = torch.sigmoid(shown) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs, dim=1)


def test_the_network_computes_the_equations_and_their_gradients():
    model = create("lstm", (LENGTH,), N_LETTERS, 0).double()
    x = torch.randint(0, N_LETTERS, (3, LENGTH)).float()
    vectors = model.letters.weight[x.long()]
    by_hand = model.out(recur(recur(vectors, model.lstm1), model.lstm2)[:, -1])
    assert torch.allclose(model(x), by_hand, rtol=1e-10, atol=1e-12)
    grads = [
        torch.autograd.grad(logits.square().sum(), list(model.parameters()))
        for logits in (model(x), by_hand)
    ]
    assert all(torch.allclose(a, b, rtol=1e-8, atol=1e-12) for a, b in zip(*grads, strict=True))


def test_initial_weights_are_those_of_leafs_cell():
    weights = create("lstm", (80,), 80, 0).state_dict()
    forget = torch.zeros(4, 256)
    forget[1] = 1
    for layer, width in (("lstm1", 8), ("lstm2", 256)):
        both = weights[f"{layer}.bias_ih_l0"] + weights[f"{layer}.bias_hh_l0"]
        assert torch.equal(both, forget.flatten())
        bound = (6 / (width + 256 + 4 * 256)) ** 0.5
        for name in ("weight_ih_l0", "weight_hh_l0"):
            assert 0.95 * bound < float(weights[f"{layer}.{name}"].abs().max()) <= bound
    assert default("shakespeare", (80,)) == "lstm"


def test_a_recurrent_layer_costs_its_matrices_times_letters(text, text_split):
    data = load_federated(text_split, text, torch.device("cpu"))
    task = ModelTask(create("lstm", (LENGTH,), N_LETTERS, 0))
    matrices = 4 * 256 * (8 + 256) + 4 * 256 * (256 + 256)
    counted = count_cost(task, data).flop
    # and the last layer: once forward, twice back
    assert counted == 3 * 2 * (LENGTH * matrices + 256 * N_LETTERS)


def test_workers_compute_what_a_loop_does(train_letters, same_state):
    looped = train_letters(rounds=1)
    workers = train_letters(rounds=1, engine="processes", workers=2)
    assert same_state(looped.state, workers.state)


def test_a_resumed_run_ends_with_the_same_bits(train_letters, text, tmp_path, same_state):
    whole = train_letters(rounds=2, algorithm="solo")
    train_letters(rounds=1, algorithm="solo", out=tmp_path / "run")
    resumed = fltrain.resume(tmp_path / "run", rounds=2, data=text)
    assert same_state(whole.state, resumed.state)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("stacked", r"layer 'lstm1' \(Recurrent\) cannot run for many jobs at once"),
        ("native", r"no kernel for layer letters, Letters\(5, 8\)"),
    ],
)
def test_engines_that_cannot_train_it_name_the_layer(train_letters, engine, said):
    with pytest.raises(UsageError, match=said):
        train_letters(engine=engine)


@pytest.mark.parametrize(
    ("wrong", "number"),
    [(0.5, "0.5"), (N_LETTERS, "5"), (-1, "-1")],
)
def test_what_is_no_letter_is_refused_before_training(train, wrong, number):
    x = np.zeros((12, LENGTH), np.float32)
    x[7, 3] = wrong
    data = niidpart.from_arrays(x, np.arange(12) % N_LETTERS)
    split = niidpart.make(data, "homo", n_parties=2, test=0.5)
    with pytest.raises(UsageError, match=f"numbers from 0 to 4, and an example has {number};"):
        train(split, data, model="lstm")


def test_letters_of_a_party_that_never_trains_are_looked_at_too(train, dealt):
    x = np.zeros((12, LENGTH), np.float32)
    x[7, 3] = 9
    data = niidpart.from_arrays(x, np.arange(12) % N_LETTERS)
    split = dealt(data, [0] * 6 + [1] * 4 + [-1] * 2, test=[-1] * 10 + [1] * 2)
    with pytest.raises(UsageError, match="an example has 9;"):
        train(split, data, model="lstm", new_parties=1)  # the one that has a test part


def test_what_tries_a_model_on_inputs_of_its_own_gives_it_letters(train_letters):
    assert "calibrated_test_accuracy" in train_letters(rounds=1, calibrate=5).history[-1]
    train_letters(rounds=1, algorithm="fedrod")
    with pytest.raises(UsageError, match="stages that end in a sigmoid"):
        train_letters(rounds=1, algorithm="fednaca")


def test_settings_that_make_other_numbers_of_letters_are_refused(train_letters):
    with pytest.raises(UsageError, match="with --normalise none"):
        train_letters(normalise="data")


def test_images_are_no_letters_and_letters_no_images(train, images, text, text_split):
    split = niidpart.make(images, "homo", n_parties=2)
    with pytest.raises(UsageError, match=r"rows of letters.*\(1, 28, 28\); use --model hidden200"):
        train(split, images, model="lstm")
    with pytest.raises(UsageError, match=r"cnn takes images.*shape \(6,\); use --model hidden200"):
        train(text_split, text, model="cnn")


def test_letters_are_not_said_to_be_off_their_scale(train, recwarn):
    """A table that reaches beyond 30 is warned of: 40 letters are as they should be."""
    rows = np.arange(40 * LENGTH, dtype=np.float32).reshape(40, LENGTH) % 40
    data = niidpart.from_arrays(rows, np.arange(40))
    split = niidpart.make(data, "homo", n_parties=2, test=0.5)
    train(split, data, model="lstm", rounds=1)
    assert not [warning for warning in recwarn if "--normalise" in str(warning.message)]


def test_leafs_files_train_without_a_word_on_the_model(train, tmp_path):
    line = "Now is the winter of our discontent, made glorious summer by this sun of York; and all"
    windows = {"x": [line[i : i + 80] for i in range(5)], "y": list(line[80:85])}
    speakers = {"RICHARD_GLOUCESTER": windows, "RICHARD_CLARENCE": windows}
    text = {"users": [*speakers], "num_samples": [5, 5], "user_data": speakers}
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "all_data_niid_1_keep_0.json").write_text(json.dumps(text))
    data = niidpart.load("shakespeare", tmp_path)
    split = niidpart.make(data, "group", n_parties=2)
    done = train(split, data, model=None, rounds=1)
    assert done.model().letters.num_embeddings == 80
