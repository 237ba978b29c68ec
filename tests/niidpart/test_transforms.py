"""Transforms: what a party's features look like. Noise composes with every strategy and belongs to the example."""

import numpy as np
import pytest
from eased import EASED, fold_classes
from scipy import stats

import niidpart
from niidpart.splits.new_parties import list_new_parties
from niidpart.strategies import STRATEGIES
from niidpart.transforms import TRANSFORMS

LABELS = np.arange(400) * 7 % 10


def noisy(n_parties=5, strategy="homo", **options):
    return niidpart.make(LABELS, strategy, n_parties=n_parties, transforms=[("noise", options)])


@pytest.mark.parametrize("sigma", [0.0, 0.1, 2.0])
def test_party_i_of_n_has_variance_sigma_i_over_n(sigma):
    std = noisy(sigma=sigma).columns["noise_std"]
    assert np.allclose(std**2, [sigma * i / 5 for i in (1, 2, 3, 4, 5)], rtol=1e-15, atol=0)


def test_the_code_variant_has_standard_deviation_sigma_i_over_n_minus_1():
    split = noisy(sigma=0.4, level="std", fresh=True)
    assert np.allclose(split.columns["noise_std"], [0, 0.1, 0.2, 0.3, 0.4], rtol=1e-15, atol=0)
    assert noisy(n_parties=1, sigma=0.4, level="std").columns["noise_std"].tolist() == [
        0
    ]  # 0 / 0 in the authors' code


def test_the_noise_that_is_added_has_that_variance_and_no_mean():
    split, x = noisy(sigma=0.5), np.zeros((2000, 30))
    for party in range(5):
        z = niidpart.transform(split, x, party, np.arange(2000)) / np.sqrt(0.5 * (party + 1) / 5)
        assert stats.kstest(z.reshape(-1), "norm").pvalue > 1e-4


def test_parties_have_independent_noise():
    split, x, rows = noisy(sigma=0.5), np.zeros((4000, 2)), np.arange(4000)
    z = np.stack([niidpart.transform(split, x, party, rows).reshape(-1) for party in range(5)])
    assert np.abs(np.corrcoef(z)[np.triu_indices(5, 1)]).max() < 4 / 8000**0.5
    assert len(np.unique(split.columns["noise_seed"])) == 5


def test_an_example_has_the_same_noise_whatever_is_read_with_it_and_in_whichever_order():
    split = noisy(sigma=0.5)
    x = (np.arange(400 * 12).reshape(400, 4, 3) % 7 / 7).astype(np.float32)
    whole = niidpart.transform(split, x, 2, np.arange(400))
    for rows in (
        np.arange(400)[::-1],
        np.arange(400) * 3 % 400,
        np.array([7]),
        np.array([399, 0, 7], np.int32),
    ):
        assert np.array_equal(niidpart.transform(split, x[rows], 2, rows), whole[rows])


def test_noise_is_the_same_across_the_blocks_it_is_drawn_in():
    split, rows = noisy(sigma=0.5), np.arange(300)
    x = np.zeros((300, 2000), np.float32)  # 600,000 values: three blocks of 2**18
    whole = niidpart.transform(split, x, 0, rows)
    assert np.array_equal(whole[250:], niidpart.transform(split, x[250:], 0, rows[250:]))


def test_images_in_bytes_are_divided_by_255_first_and_nothing_is_clipped():
    x = np.arange(256, dtype=np.uint8).reshape(4, 8, 8)
    clean = niidpart.transform(noisy(sigma=0.0), x, 0, np.arange(4))
    assert clean.dtype == np.float32
    assert np.array_equal(clean, x.astype(np.float32) / np.float32(255))
    loud = niidpart.transform(noisy(sigma=4.0), x, 4, np.arange(4))
    assert loud.min() < 0
    assert loud.max() > 1


def test_without_transforms_features_come_back_as_they_are():
    x = np.arange(6, dtype=np.uint8).reshape(3, 2)
    assert niidpart.transform(niidpart.make(LABELS, "homo"), x, 0, np.arange(3)) is x


def test_fresh_noise_is_left_to_training():
    x = np.ones((3, 2), np.float32)
    assert np.array_equal(
        niidpart.transform(noisy(sigma=9.0, level="std", fresh=True), x, 4, np.arange(3)), x
    )


@pytest.mark.parametrize("shape", [(0, 4), (0, 8, 8), (0, 8, 8, 3)])
def test_a_party_that_holds_nothing_has_features_of_the_right_shape(shape):
    assert (
        niidpart.transform(
            noisy(sigma=0.1), np.zeros(shape, np.float32), 0, np.zeros(0, np.int64)
        ).shape
        == shape
    )


@pytest.mark.parametrize("strategy", STRATEGIES.names())
def test_all_transforms_compose_with_each_strategy_and_move_no_example(strategy):
    keywords = {"n_parties": 4, "groups": np.arange(400) % 8, "seed": 3}
    keywords |= {"embeddings": np.arange(1200).reshape(400, 3) ** 2 % 101}
    if strategy == "feddyn":
        keywords["beta"] = 5.0  # with its own 0.3 its code draws for long until classes fit
    keywords |= EASED.get(strategy, {})
    labels = fold_classes(strategy, LABELS)
    keywords["noisy_labels"] = labels[::-1].copy()
    plain = niidpart.make(labels, strategy, **keywords)
    x = np.full((2, 3, 3), 0.5, np.float32)
    every = [(name, {}) for name in TRANSFORMS.names()]
    changed = niidpart.make(labels, strategy, transforms=every, **keywords)
    assert changed.train.digest == plain.train.digest
    assert changed.digest != plain.digest
    for column, values in plain.columns.items():  # the strategy's own
        assert np.array_equal(changed.columns[column], values)
    added = changed.columns.keys() - plain.columns.keys()
    for name in TRANSFORMS.names():
        own = {column for column in added if column.startswith(f"{name}_")}
        assert own
        assert all(changed.columns[column].shape == (4,) for column in own)
    assert niidpart.transform(changed, x, 3, np.arange(2)).shape == x.shape


def test_noise_as_a_strategy_is_homo_with_the_transform():
    short, long = (
        niidpart.make(LABELS, "noise", sigma=0.3),
        niidpart.make(LABELS, "homo", transforms=[("noise", {"sigma": 0.3})]),
    )
    assert short.digest == long.digest
    assert short.recipe == long.recipe


def test_one_transform_twice_has_its_own_columns_and_noise():
    split = niidpart.make(
        LABELS,
        "homo",
        n_parties=2,
        transforms=[("noise", {"sigma": 0.1}), ("noise", {"sigma": 0.1})],
    )
    assert sorted(split.columns) == ["noise2_seed", "noise2_std", "noise_seed", "noise_std"]
    assert [name for name, _ in split.recipe.named_transforms] == ["noise", "noise2"]
    assert not np.array_equal(split.columns["noise_seed"], split.columns["noise2_seed"])
    z = niidpart.transform(split, np.zeros((5000, 1), np.float32), 1, np.arange(5000))
    assert abs(z.var() - 0.2) < 4 * 0.2 * (2 / 5000) ** 0.5  # variances add


def test_noise_depends_on_the_seed():
    seeds = [
        niidpart.make(LABELS, "noise", n_parties=3, seed=seed).columns["noise_seed"].tolist()
        for seed in range(3)
    ]
    assert len({s for row in seeds for s in row}) == 9


def test_new_parties_are_a_share_drawn_at_random_and_fewer_are_some_of_more():
    def draw(held_out, n_parties=10, seed=0):
        split = niidpart.make(
            *(LABELS, "new-parties"), held_out=held_out, n_parties=n_parties, seed=seed
        )
        return set(list_new_parties(split))

    assert [len(draw(asked)) for asked in (0.01, 0.29, 0.99, 1, 4, 9)] == [1, 2, 9, 1, 4, 9]
    assert len(draw(0.29, n_parties=100)) == 29  # 28.999999999999996 in floats
    assert draw(2) < draw(3) < draw(7)
    assert draw(0.5, n_parties=1) == set()
    counts = np.bincount([p for seed in range(300) for p in draw(3, seed=seed)], minlength=10)
    assert (counts > 60).all()  # 90 each, standard deviation 8
    assert (counts < 120).all()
    for asked, said in ((10, "none would be left to train"), (2.5, "a whole number of them")):
        with pytest.raises(niidpart.UsageError, match=said):
            draw(asked)
