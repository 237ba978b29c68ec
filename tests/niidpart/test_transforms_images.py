"""Transforms of images: rotation, blur, contrast, colour, corruption. Their laws, and what they leave."""

import itertools

import numpy as np
import pytest
from scipy import ndimage, stats

import niidpart
from niidpart.arithmetic.exact import find_direction
from niidpart.transforms._corruptions import KINDS

LABELS = np.arange(400) * 7 % 10
IMAGES = ["rotation", "blur", "contrast", "colour", "corruption"]
GREY = (np.arange(60 * 9 * 9).reshape(60, 9, 9) ** 2 % 251 / 250).astype(np.float32)
COLOURED = (np.arange(60 * 8 * 6 * 3).reshape(60, 8, 6, 3) ** 2 % 251 / 250).astype(np.float32)
ROWS = np.arange(60)


def make(name, n_parties=4, seed=0, **options):
    return niidpart.make(LABELS, name, n_parties=n_parties, seed=seed, **options)


def see(split, party, x=GREY):
    return niidpart.transform(split, x, party, ROWS[: len(x)])


@pytest.mark.parametrize("x", [GREY, COLOURED, (GREY * 255).astype(np.uint8)])
@pytest.mark.parametrize("name", IMAGES)
def test_an_image_looks_the_same_whatever_is_read_with_it(name, x):
    split = make(name, n_parties=9)
    for party in range(9):
        whole = see(split, party, x)
        assert (whole.shape, whole.dtype) == (x.shape, np.float32)
        some = np.array([40, 3, 17])
        assert np.array_equal(niidpart.transform(split, x[some], party, some), whole[some])


@pytest.mark.parametrize("name", IMAGES)
def test_tables_are_refused_and_nobody_is_no_error(name):
    table = niidpart.from_arrays(np.ones((400, 5), np.float32), LABELS)
    with pytest.raises(niidpart.UsageError, match=f"{name} needs images"):
        niidpart.make(table, name)
    assert see(make(name), 0, GREY[:0]).shape == (0, 9, 9)


@pytest.mark.parametrize("degrees", [*range(-360, 361, 15), 44.9, 45.1, 1e-3])
def test_directions_are_those_of_numpy(degrees):
    cosine, sine = find_direction(float(degrees))
    assert abs(cosine - np.cos(np.radians(degrees))) < 1e-15
    assert abs(sine - np.sin(np.radians(degrees))) < 1e-15


class TestRotation:
    def test_quarter_turns_move_the_pixels_of_a_square(self):
        split = make("rotation", n_parties=8)
        degrees = split.columns["rotation_degrees"]
        assert sorted(degrees.tolist()) == [0, 0, 90, 90, 180, 180, 270, 270]
        for party in range(8):
            turned = np.rot90(GREY, int(degrees[party]) // 90, axes=(1, 2))
            assert np.array_equal(see(split, party), turned)

    def test_half_a_turn_moves_those_of_any_image(self):
        split = make("rotation", n_parties=2, angle=180.0, turns=2)
        party = int(split.columns["rotation_degrees"].argmax())
        assert np.array_equal(see(split, party, COLOURED), COLOURED[:, ::-1, ::-1])

    @pytest.mark.parametrize("angle", [15.0, 75.0, -40.0])
    def test_other_angles_are_those_of_scipy(self, angle):
        """scipy turns in the plane of the axes that it is told, by splines of order 1."""
        split = make("rotation", n_parties=2, angle=angle, turns=2)
        party = int(np.flatnonzero(split.columns["rotation_degrees"])[0])
        theirs = ndimage.rotate(
            GREY.astype(float), angle, axes=(1, 2), reshape=False, order=1, mode="grid-constant"
        )
        assert np.abs(see(split, party) - theirs).max() < 1e-5

    def test_any_party_may_have_any_angle(self):
        found = {tuple(make("rotation", seed=s).columns["rotation_degrees"]) for s in range(60)}
        assert len(found) > 15  # of 24 orders


class TestBlurAndContrast:
    def test_blur_is_that_of_scipy(self):
        split = make("blur", sigma=1.6)
        assert np.allclose(split.columns["blur_std"], [0.4, 0.8, 1.2, 1.6])
        for party, sigma in enumerate((0.4, 0.8, 1.2, 1.6)):
            theirs = ndimage.gaussian_filter(GREY, (0, sigma, sigma), mode="nearest", truncate=4.0)
            assert np.abs(see(split, party) - theirs).max() < 1e-5

    def test_no_blur_changes_nothing(self):
        assert np.array_equal(see(make("blur", sigma=0.0), 3), GREY)

    def test_contrast_keeps_the_mean_and_scales_what_differs_from_it(self):
        split = make("contrast", loss=0.8)
        assert np.allclose(split.columns["contrast_factor"], [0.8, 0.6, 0.4, 0.2])
        for party, factor in enumerate((0.8, 0.6, 0.4, 0.2)):
            seen = see(split, party, COLOURED)
            assert np.allclose(seen.mean((1, 2)), COLOURED.mean((1, 2)), atol=1e-6)
            assert np.allclose(seen.std((1, 2)), factor * COLOURED.std((1, 2)), atol=1e-6)


class TestColour:
    def test_each_channel_has_its_gain(self):
        split = make("colour", tint=0.5)
        for party in range(4):
            gains = [split.columns[f"colour_{name}"][party] for name in ("red", "green", "blue")]
            assert np.allclose(see(split, party, COLOURED), COLOURED * gains, rtol=1e-6)
            assert np.allclose(see(split, party), GREY * gains[0], rtol=1e-6)

    def test_gains_are_uniform(self):
        columns = make("colour", n_parties=400, tint=0.5).columns
        gains = np.concatenate([columns[f"colour_{name}"] for name in ("red", "green", "blue")])
        assert stats.kstest(gains, stats.uniform(0.5, 1.0).cdf).pvalue > 1e-3


class TestCorruption:
    def test_kinds_are_dealt_evenly(self):
        kinds = make("corruption", n_parties=16).columns["corruption_kind"]
        assert np.bincount(kinds).tolist() == [2] * 8

    def test_severity_rises(self):
        columns = make("corruption", n_parties=10, severity=5, rising=True).columns
        assert columns["corruption_severity"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]

    @pytest.mark.parametrize(("kind", "x"), list(itertools.product(KINDS, [GREY, COLOURED])))
    def test_values_stay_in_the_range_and_change_more_with_severity(self, kind, x):
        moved = []
        for severity in range(6):
            split = make("corruption", corruption=kind, severity=severity)
            seen = see(split, 2, x)
            assert 0 <= seen.min() <= seen.max() <= 1
            moved.append(float(np.abs(seen - x).mean()))
        assert moved[0] == 0
        if kind == "saturate":  # the authors' levels first take saturation off, then add it
            assert (max(moved) > 0) == (x is COLOURED)
        else:
            assert moved[5] > moved[1] > 0

    def test_noise_has_the_published_deviation(self):
        flat = np.full((60, 30, 30), 0.5, np.float32)
        for kind, levels in (
            ("gaussian-noise", (0.04, 0.06, 0.08, 0.09, 0.1)),
            ("speckle-noise", (0.03, 0.05, 0.06, 0.08, 0.1)),  # half of 0.06, ...
        ):
            for severity, std in enumerate(levels, 1):
                seen = see(make("corruption", corruption=kind, severity=severity), 1, flat)
                assert abs(seen.std() / std - 1) < 0.02

    def test_impulses_are_as_many_as_published(self):
        flat = np.full((60, 40, 40), 0.5, np.float32)
        for severity, rate in enumerate((0.01, 0.02, 0.03, 0.05, 0.07), 1):
            seen = see(make("corruption", corruption="impulse-noise", severity=severity), 1, flat)
            n_hit = int((seen != 0.5).sum())
            law = stats.binom(flat.size, rate)
            assert law.ppf(1e-5) <= n_hit <= law.ppf(1 - 1e-5)
            assert abs((seen == 1).sum() / n_hit - 0.5) < 0.05

    def test_brightness_and_saturation_are_those_of_hsv(self):
        """colorsys, pixel by pixel, on images that have colour."""
        import colorsys

        few = COLOURED[:4]
        for kind, change in (
            ("brightness", lambda h, s, v: (h, s, min(v + 0.15, 1))),
            ("saturate", lambda h, s, v: (h, min(s * 1.5, 1), v)),
        ):
            seen = see(make("corruption", corruption=kind, severity=3), 0, few).reshape(-1, 3)
            for pixel, found in zip(few.reshape(-1, 3).tolist(), seen, strict=True):
                wanted = colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel)))
                assert np.abs(np.array(wanted) - found).max() < 1e-5

    def test_pixels_keep_the_mean_and_a_flat_image(self):
        split = make("corruption", corruption="pixelate", severity=5)
        assert np.allclose(see(split, 0).mean((1, 2)), GREY.mean((1, 2)), atol=1e-5)
        flat = np.full((3, 9, 9), 0.25, np.float32)
        assert np.allclose(see(split, 0, flat), 0.25, atol=1e-6)
