"""Normalisation: constants by hand, means and deviations against numpy's, and a table that cannot be trained on without."""

import contextlib
import re
import typing
import warnings

import numpy as np
import pytest
import torch

import niidpart
from fltrain import Diverged, Settings
from fltrain.inputs import normalisation as normalise
from fltrain.inputs.gathering import load_federated
from fltrain.inputs.normalisation import CONSTANTS, fit_normalisation, make_normalisation

CPU = torch.device("cpu")
ALL = slice(None)

# (x - mean) / deviation of a black and of a white pixel in each channel, from the numbers as they are printed where they come from
BY_HAND = {
    "cifar10": (
        [-125.3 / 63.0, -123.0 / 62.1, -113.9 / 66.7],
        [129.7 / 63.0, 132.0 / 62.1, 141.1 / 66.7],
    ),
    "cifar10-fedcd": (
        [-0.4914 / 0.2023, -0.4822 / 0.1994, -0.4465 / 0.2010],
        [0.5086 / 0.2023, 0.5178 / 0.1994, 0.5535 / 0.2010],
    ),
    "cifar10-map": (
        [-0.4914 / 0.2023, -0.4822 / 0.1994, -0.4465 / 0.2010],
        [0.5086 / 0.2023, 0.5178 / 0.1994, 0.5535 / 0.2010],
    ),
    "cifar100": (
        [-0.50708 / 0.26733, -0.48655 / 0.25644, -0.44092 / 0.27615],
        [0.49292 / 0.26733, 0.51345 / 0.25644, 0.55908 / 0.27615],
    ),
    "mnist-map": ([-33.3184 / 78.5675], [221.6816 / 78.5675]),
    "half": ([-1.0] * 3, [1.0] * 3),
}


def pictures(channels, dtype=np.uint8, n=40):
    """n training and 4 test images of 5 x 4."""
    x = np.random.default_rng(3).integers(0, 256, (n, 5, 4, channels), np.uint8)
    x = x if dtype == np.uint8 else (x / 255).astype(dtype)
    x = x[..., 0] if channels == 1 else x
    return niidpart.from_arrays(x, np.arange(n) % 2, x[:4], np.arange(4) % 2)


def inputs(data, how, **options):
    split = niidpart.make(data, "homo", n_parties=3, **options)
    return load_federated(split, data, CPU, Settings(normalise=how))


@pytest.mark.parametrize("how", CONSTANTS)
def test_black_and_white_come_out_as_by_hand(how):
    black, white = (torch.tensor(v) for v in BY_HAND[how])
    norm = make_normalisation(how, torch.zeros(1, len(black), 2, 2, dtype=torch.uint8))
    for value, expected in ((0.0, black), (1.0, white)):
        out = norm(torch.full((3, len(black), 2, 2), value))
        assert out.dtype == torch.float32
        assert (out - expected.view(-1, 1, 1)).abs().max() < 1e-4


def test_every_constant_is_a_setting_and_every_setting_is_tested():
    names = set(typing.get_args(typing.get_type_hints(Settings)["normalise"]))
    assert names == {"none", "data"} | set(CONSTANTS)
    assert set(BY_HAND) == set(CONSTANTS)


def test_bytes_of_a_grey_image_come_out_as_the_paper_standardises_0_to_255():
    data = pictures(1)
    for examples, x in zip(_all(inputs(data, "mnist-map")), _originals(data), strict=True):
        assert (
            np.abs(
                examples.inputs(ALL)[:, 0].numpy() - (x(examples.rows) - 33.3184) / 78.5675
            ).max()
            < 1e-5
        )


def _all(federated):
    return federated.train, federated.global_test


def _originals(data):
    return (lambda rows: data.features(rows.numpy()).astype(np.float64)), (
        lambda rows: data.test_features(rows.numpy()).astype(np.float64)
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_each_channel_has_its_own_constants_in_training_and_evaluation(dtype):
    data = pictures(3, dtype)
    federated = inputs(data, "cifar10", val=0.2, test=0.2)
    mean, std = np.array([125.3, 123.0, 113.9]) / 255, np.array([63.0, 62.1, 66.7]) / 255
    for name in ("train", "val", "test", "global_test"):
        examples = getattr(federated, name)
        source = data.test_features if name == "global_test" else data.features
        x = source(examples.rows.numpy()) / (255 if dtype == np.uint8 else 1)
        for epoch in (0, 1):
            assert (
                np.abs(
                    examples.inputs(ALL, epoch).numpy().transpose(0, 2, 3, 1) - (x - mean) / std
                ).max()
                < 1e-5
            )


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_mean_and_deviation_of_images_are_those_of_all_parties_training_rows_by_channel(
    channels, dtype
):
    data = pictures(channels, dtype)
    federated = inputs(data, "data", val=0.2, test=0.2)
    rows = federated.train.rows.numpy()
    assert len(rows) < 40
    x = data.features(rows).reshape(len(rows), 5, 4, channels).astype(np.float64) / (
        255 if dtype == np.uint8 else 1
    )
    norm = federated.train.prepare.normalise
    assert norm.mean.shape == norm.std.shape == (channels, 1, 1)
    assert np.abs(norm.mean.flatten().numpy() - x.mean((0, 1, 2))).max() < 1e-7
    assert np.abs(norm.std.flatten().numpy() - x.std((0, 1, 2))).max() < 1e-7
    out = federated.train.inputs(ALL).double()
    assert out.mean((0, 2, 3)).abs().max() < 1e-6
    assert (out.std((0, 2, 3), correction=0) - 1).abs().max() < 1e-6
    for name in ("val", "test", "global_test"):
        assert getattr(federated, name).prepare.normalise is norm


def test_those_of_a_table_are_by_column_of_the_training_rows_alone(table, table_split):
    federated = load_federated(table_split, table, CPU, Settings(normalise="data"))
    x = np.concatenate([table.features(rows) for rows in table_split.train]).astype(np.float64)
    norm = federated.train.prepare.normalise
    assert np.abs(norm.mean.numpy() - x.mean(0)).max() < 1e-6
    assert np.abs(norm.std.numpy() - x.std(0)).max() < 1e-6
    assert (
        np.abs(x.mean(0) - table.features(ALL).mean(0)).max() > 0.01
    )  # the rows held out would show
    assert (
        np.abs(
            federated.global_test.inputs(ALL).numpy()
            - (table.test_features(ALL) - x.mean(0)) / x.std(0)
        ).max()
        < 1e-5
    )


def test_fixed_noise_counts_in_the_deviation(table):
    split = niidpart.make(table, "homo", n_parties=3, transforms=[("noise", {"sigma": 9.0})])
    train = load_federated(split, table, CPU, Settings(normalise="data")).train
    x = train.x.double().numpy()
    assert np.abs(train.prepare.normalise.std.numpy() - x.std(0)).max() < 1e-6
    assert x.std(0).min() > 2


@pytest.mark.parametrize("values", [1, 7, 100])
def test_the_size_of_blocks_does_not_matter(monkeypatch, values):
    x = torch.rand(50, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    whole = fit_normalisation(x)
    monkeypatch.setattr(normalise, "_VALUES", values)
    blocks = fit_normalisation(x)
    assert torch.allclose(blocks.mean, whole.mean, rtol=1e-7, atol=0)
    assert torch.allclose(blocks.std, whole.std, rtol=1e-7, atol=0)


def test_what_is_constant_keeps_the_deviation_1_and_becomes_0():
    x = torch.tensor([0.1, 1e6, 0.0, 3.0]).repeat(1001, 1)
    x[:, 3] = torch.arange(1001) % 2
    norm = fit_normalisation(x)
    assert norm.std.tolist()[:3] == [1.0, 1.0, 1.0]
    assert (norm(x)[:, :3] == 0).all()
    images = torch.full((30, 2, 3, 3), 77, dtype=torch.uint8)
    images[:, 1, 0] = 0
    assert fit_normalisation(images).std.flatten().tolist() == pytest.approx(
        [1.0, 77 / 255 * (2 / 9) ** 0.5], rel=1e-6
    )


def test_small_deviations_beside_large_means_are_found():
    x = (
        torch.tensor([16_777_214.0, 16_777_215.0, 16_777_216.0]).repeat(400).view(-1, 1)
    )  # the last integers that float32 tells apart
    assert float(fit_normalisation(x).std) == pytest.approx((2 / 3) ** 0.5, rel=1e-6)


def test_the_default_type_of_torch_does_not_matter():
    x = torch.zeros(2, 1, 3, 3, dtype=torch.uint8)
    torch.set_default_dtype(torch.float64)
    try:
        assert [
            make_normalisation(how, x)(x.float()).dtype for how in ("mnist-map", "half", "data")
        ] == [torch.float32] * 3
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_table_of_thousands_trains_with_the_mean_and_deviation_of_its_rows(train):
    """Columns in thousands, as those of covtype; the class is whether the first two add up to more than their means."""
    gen = np.random.default_rng(4)
    z, scale, shift = (
        gen.normal(size=(400, 5)),
        np.array([3000, 200, 5, 1, 7000]),
        np.array([2800, 4000, 12, 0, 9000]),
    )
    x, y = (z * scale + shift).astype(np.float32), (z[:, 0] + z[:, 1] > 0).astype(np.int64)
    data = niidpart.from_arrays(x[:300], y[:300], x[300:], y[300:])
    split = niidpart.make(data, "homo", n_parties=3)
    done = train(split, data, rounds=5, local_epochs=2, normalise="data")
    assert done.history[-1]["test_accuracy"] > 0.95
    raw = 0.0
    with (
        pytest.warns(
            UserWarning,
            match=r"features of this table reach 2\.653e\+04.*--normalise data scales them",
        ),
        contextlib.suppress(Diverged),
    ):
        raw = train(split, data, rounds=5, local_epochs=2).history[-1]["test_accuracy"]
    assert raw < 0.9


def test_ages_as_they_are_come_with_the_advice_to_scale_them(train):
    """At the rate 0.01 a step of a logistic model overshoots from 28 on: ages, not counts to 20."""
    y = np.arange(60) % 2
    ages = np.stack([18.0 + np.arange(60), y], axis=1)
    split = niidpart.make(y, "homo", n_parties=3, test=0.2)
    with pytest.warns(UserWarning, match=r"features of this table reach 7.*--normalise data"):
        train(split, niidpart.from_arrays(ages, y), rounds=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(split, niidpart.from_arrays(ages / 4, y), rounds=1)


@pytest.mark.parametrize(("how", "channels"), [("cifar10", 1), ("cifar100", 1), ("mnist-map", 3)])
def test_constants_for_another_number_of_channels_are_refused(how, channels, train):
    data = pictures(channels)
    wanted = f"normalise {how} is for images of {'1 channel' if channels == 3 else '3 channels'}, these have {channels}; use --normalise data"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        train(niidpart.make(data, "homo", n_parties=2), data, normalise=how)


@pytest.mark.parametrize("how", ["cifar10", "mnist-map"])
def test_constants_of_images_are_refused_for_a_table(how, table, table_split, train):
    with pytest.raises(
        ValueError, match=r"these examples are rows of 6 numbers; use --normalise data"
    ):
        train(table_split, table, normalise=how)


def test_half_fits_whatever_lies_between_0_and_1(table, table_split):
    for channels in (1, 3):
        out = inputs(pictures(channels), "half").train.inputs(ALL)
        assert out.shape[1:] == (channels, 5, 4)
        assert (float(out.min()), float(out.max())) == (-1.0, 1.0)
    train = load_federated(table_split, table, CPU, Settings(normalise="half")).train
    assert torch.equal(train.inputs(ALL), (train.x - 0.5) / 0.5)


def test_a_column_that_is_not_finite_is_named():
    x = torch.ones(5, 3)
    for bad in (float("nan"), float("inf")):
        x[2, 1] = bad
        with pytest.raises(
            ValueError,
            match=r"column 1 of the training rows has no finite mean and deviation; clean the data",
        ):
            fit_normalisation(x)


def test_without_training_rows_there_is_no_mean(table, dealt):
    split = dealt(table, np.full(90, -1), n_parties=2)
    with pytest.raises(ValueError, match="no party has a training row"):
        load_federated(split, table, CPU, Settings(normalise="data"))
