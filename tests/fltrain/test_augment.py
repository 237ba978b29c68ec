"""Augmentation: crops, flips and rotations against slices and loops by hand, and draws that depend on seed, party, row and epoch alone."""

import math
import shutil
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from torch.nn import functional as F

import fltrain
import niidpart
from fltrain import Settings, resume
from fltrain.draws import augmentation, key
from fltrain.engine.batches import iterate_in_order
from fltrain.inputs.augmentation import Augmentation, find_sources
from fltrain.inputs.gathering import load_federated
from niidpart.arithmetic import rng

CPU = torch.device("cpu")
RARE = 1e-4  # a correct sampler would fall below this p-value with one seed in ten thousand
ALL = slice(None)
KEY = key(0, "augment")
PLAIN = Settings()
EVERYTHING = {"crop": 2, "flip": True, "rotate": 20.0}


def words(rows, party, epoch, seed=0):
    """The four words of each example, from the philox of niidpart: row, party and epoch are the counter."""
    rows = np.asarray(rows, np.uint64)
    low, high, zero = rows & np.uint64(0xFFFFFFFF), rows >> np.uint64(32), np.zeros_like(rows)
    return rng.philox(
        key(seed, "augment"),
        (
            low,
            zero + np.uint64(party),
            zero + np.uint64(epoch),
            high << np.uint64(8) | np.uint64(1),
        ),
    )


def offsets(word, crop):
    return [int(w) * (2 * crop + 1) >> 32 for w in word]


def drawn(augment, picture, rows, party=0, epoch=1):
    """The picture [C, H, W], augmented for each of the rows."""
    x = picture.expand(len(rows), *picture.shape)
    return augment(x, torch.tensor(rows), torch.full((len(rows),), party), epoch)


def numbered(channels, height, width):
    """A picture whose values, all different and none 0, say where they stood."""
    return 1.0 + torch.arange(channels * height * width).view(channels, height, width)


def turned_by_hand(picture, degrees):
    """Pixel by pixel: where it comes from when the picture turns anticlockwise about its centre, rounded to the nearest; 0 from outside."""
    _, height, width = picture.shape
    out, a = torch.zeros_like(picture), math.radians(degrees)
    for r in range(height):
        for c in range(width):
            up, right = (height - 1) / 2 - r, c - (width - 1) / 2
            x, y = (
                right * math.cos(a) + up * math.sin(a),
                up * math.cos(a) - right * math.sin(a),
            )  # turned back
            i, j = math.floor((height - 1) / 2 - y + 0.5), math.floor(x + (width - 1) / 2 + 0.5)
            if 0 <= i < height and 0 <= j < width:
                out[:, r, c] = picture[:, i, j]
    return out


# The draws


def test_words_are_those_of_the_counter_row_party_epoch():
    rows = [0, 1, 77, 2**32 - 1, 2**32, 2**40 + 5]
    for party, epoch in ((0, 1), (3, 1), (3, 500)):
        ours = augmentation(KEY, torch.tensor(rows), torch.full((6,), party), epoch)
        assert [w.tolist() for w in ours] == [w.tolist() for w in words(rows, party, epoch)]


def test_words_are_pinned():
    """Pinned: other words would be other pictures, and published runs would not come out again."""
    drawn = augmentation(KEY, torch.tensor([5]), torch.tensor([2]), 3)
    assert [int(w) for w in drawn] == [0x951B2BB4, 0xBB43E8CC, 0xA1C29C2, 0xBC06ED49]


@pytest.mark.parametrize("crop", [1, 4])
def test_every_offset_and_either_side_are_as_likely(crop):
    """crop 1: 9 offsets x 2 sides, seen in a picture of 5 x 5 of which the middle 3 x 3 always shows; crop 4: 81 offsets, seen at the centre."""
    side = 2 * crop + (3 if crop == 1 else 1)
    middle = side // 2
    augment, found = Augmentation(KEY, crop=crop, flip=crop == 1), []
    for epoch in range(1, 7):
        for party in range(3):
            x = drawn(augment, numbered(1, side, side), list(range(900)), party, epoch)[:, 0]
            mirrored = (
                x[:, middle, middle - 1] > x[:, middle, middle + 1]
                if crop == 1
                else torch.zeros(900)
            )
            found.append(torch.stack([x[:, middle, middle], mirrored], dim=1))
    kinds, counts = np.unique(torch.cat(found).numpy(), axis=0, return_counts=True)
    assert len(kinds) == (18 if crop == 1 else 81)
    assert stats.chisquare(counts).pvalue > RARE


def test_angles_are_uniform_within_the_limit():
    """In a picture that holds its row numbers, what is 80 pixels right of the centre comes from 80 sin(angle) below it."""
    side, limit = 201, 30.0
    rows = torch.arange(side).float().view(1, side, 1).expand(1, side, side)
    x = torch.cat(
        [
            drawn(Augmentation(KEY, rotate=limit), rows, list(range(start, start + 50)))
            for start in range(0, 500, 50)
        ]
    )
    angle = np.degrees(
        np.arcsin((x[:, 0, 100, 180] - 100).numpy() / 80)
    )  # to half a pixel, 0.42 degrees
    expected = [(int(w) / 2**31 - 1) * limit for w in words(range(3000), 0, 1)[3]]
    assert np.abs(angle - expected[:500]).max() < 0.5
    assert stats.kstest(expected, stats.uniform(-limit, 2 * limit).cdf).pvalue > RARE


def test_the_four_draws_of_an_example_are_independent():
    u = np.stack([np.asarray(w, np.float64) for w in words(range(10_000), 0, 1)])
    assert np.abs(np.corrcoef(u) - np.eye(4)).max() < 4 / 10_000**0.5


@pytest.mark.parametrize(
    "options",
    [{"crop": 3}, {"crop": 3, "pad": "reflect"}, {"flip": True}, {"rotate": 40.0}, EVERYTHING],
    ids=str,
)
def test_a_picture_is_the_same_in_every_batch(options):
    augment = Augmentation(KEY, **options)
    x = torch.rand(60, 3, 8, 9, generator=torch.Generator().manual_seed(0))
    rows, party = torch.arange(60) * 3, torch.arange(60) % 4
    whole = augment(x, rows, party, 2)
    torch.manual_seed(1)
    for at in (torch.arange(59, -1, -1), torch.tensor([7]), torch.tensor([3, 3, 50, 3])):
        assert torch.equal(augment(x[at], rows[at], party[at], 2), whole[at])
    assert (whole != x).any()


@pytest.mark.parametrize("options", [{"crop": 3}, {"flip": True}, {"rotate": 40.0}], ids=str)
def test_rows_parties_epochs_and_seeds_draw_apart(options):
    rows, picture = list(range(200)), numbered(1, 9, 9)
    first = drawn(Augmentation(KEY, **options), picture, rows)
    others = [
        drawn(Augmentation(KEY, **options), picture, rows, epoch=2),
        drawn(Augmentation(KEY, **options), picture, rows, party=1),
        drawn(Augmentation(key(1, "augment"), **options), picture, rows),
        drawn(Augmentation(KEY, **options), picture, [r + 1 for r in rows]),
        drawn(Augmentation(KEY, **options), picture, [r + 2**32 for r in rows]),
    ]
    for other in others:
        moved = int((first != other).flatten(1).any(1).sum())
        assert (
            moved > 60
        )  # flips agree with chance 1/2: fewer than 60 of 200 differ with chance 4e-9


# What they do


@pytest.mark.parametrize("pad", ["zero", "reflect"])
def test_a_crop_is_a_slice_of_the_padded_picture_for_every_offset(pad):
    picture, crop, rows = numbered(3, 6, 7), 4, list(range(900))
    padded = F.pad(picture[None], (crop,) * 4, mode="constant" if pad == "zero" else "reflect")[0]
    out = drawn(Augmentation(KEY, crop=crop, pad=pad), picture, rows)
    top, left = (offsets(w, crop) for w in words(rows, 0, 1)[:2])
    assert len(set(zip(top, left, strict=True))) == 81
    for i in rows:
        assert torch.equal(out[i], padded[:, top[i] : top[i] + 6, left[i] : left[i] + 7])


def test_a_crop_may_be_larger_than_the_picture():
    rows = list(range(300))
    out = drawn(Augmentation(KEY, crop=9), numbered(1, 2, 2), rows)
    padded = F.pad(numbered(1, 2, 2), (9,) * 4)
    top, left = (offsets(w, 9) for w in words(rows, 0, 1)[:2])
    for i in rows:
        assert torch.equal(out[i], padded[:, top[i] : top[i] + 2, left[i] : left[i] + 2])


def test_a_flip_is_left_to_right():
    picture, rows = numbered(2, 4, 5), list(range(100))
    out = drawn(Augmentation(KEY, flip=True), picture, rows)
    for i, word in enumerate(words(rows, 0, 1)[2]):
        assert torch.equal(out[i], picture.flip(2) if int(word) >= 2**31 else picture)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (7, 7), (6, 9)])
def test_a_rotation_is_that_of_a_loop_over_pixels(height, width):
    picture, rows = numbered(2, height, width), list(range(60))
    out = drawn(Augmentation(KEY, rotate=180.0), picture, rows)
    for i, word in enumerate(words(rows, 0, 1)[3]):
        assert torch.equal(out[i], turned_by_hand(picture, ((int(word) + 0.5) / 2**31 - 1) * 180))


def pixels(picture, degrees):
    """The picture [C, H, W] turned by an angle that is given."""
    _, height, width = picture.shape
    r, c = find_sources(
        torch.arange(height).view(1, -1, 1),
        torch.arange(width).view(1, 1, -1),
        height,
        width,
        torch.tensor([[[degrees]]]),
    )
    out = picture[:, r[0].clamp(0, height - 1), c[0].clamp(0, width - 1)]
    return out * ((r >= 0) & (r < height) & (c >= 0) & (c < width))


@pytest.mark.parametrize("degrees", [-179.0, -90.0, -15.0, 0.3, 15.0, 44.0, 100.0])
def test_a_rotation_is_that_of_scipy(degrees):
    picture = numbered(1, 28, 28)
    theirs = ndimage.rotate(
        picture[0].numpy(), degrees, reshape=False, order=0, mode="grid-constant"
    )
    assert (pixels(picture, degrees)[0].numpy() == theirs).all()


@pytest.mark.parametrize("degrees", [-171.0, -15.0, 7.3, 15.0, 61.0])
def test_a_rotation_is_that_of_pillow_but_for_pixels_half_way_between_two(degrees):
    """Pillow, which torchvision's RandomRotation calls, counts in steps of 1/65536 of a pixel: at 32 pixels it decides about 1 of 8,000 otherwise."""
    image = pytest.importorskip("PIL.Image")
    picture = numbered(1, 32, 32)
    theirs = np.asarray(
        image.fromarray(picture[0].numpy()).rotate(degrees, resample=image.Resampling.NEAREST)
    )
    assert (pixels(picture, degrees)[0].numpy() != theirs).mean() < 0.002


def test_quarter_turns_are_exact_and_no_turn_changes_nothing():
    picture = numbered(2, 6, 6)
    for quarters in range(-2, 3):
        assert torch.equal(pixels(picture, 90.0 * quarters), torch.rot90(picture, quarters, (1, 2)))


def test_the_crop_comes_first_then_the_flip_then_the_rotation():
    picture, rows = numbered(1, 7, 8), list(range(80))
    out = drawn(Augmentation(KEY, **EVERYTHING), picture, rows)
    padded = F.pad(picture, (2,) * 4)
    for i, (a, b, side, turn) in enumerate(zip(*words(rows, 0, 1), strict=True)):
        top, left = offsets([a, b], 2)
        cropped = padded[:, top : top + 7, left : left + 8]
        cropped = cropped.flip(2) if int(side) >= 2**31 else cropped
        assert torch.equal(out[i], turned_by_hand(cropped, ((int(turn) + 0.5) / 2**31 - 1) * 20))


def test_what_comes_from_outside_is_0_even_beside_infinity():
    out = drawn(Augmentation(KEY, crop=2), torch.full((1, 3, 3), math.inf), list(range(100)))
    assert set(out.flatten().tolist()) == {0.0, math.inf}


# In a run


@pytest.fixture(scope="module")
def pictures():
    """60 training and 20 test images of 8 x 9 in three colours, in 3 classes; bytes, none of them 0."""
    gen = np.random.default_rng(2)
    x, x_test = (gen.integers(1, 256, (n, 8, 9, 3), np.uint8) for n in (60, 20))
    return niidpart.from_arrays(x, np.arange(60) % 3, x_test, np.arange(20) % 3)


@pytest.fixture(scope="module")
def split(pictures):
    return niidpart.make(pictures, "homo", n_parties=4, val=0.2, test=0.2)


def load_augmented(split, data, device, settings=PLAIN):
    return load_federated(split, data, device, settings).prepare_for(settings)


def test_training_is_augmented_and_evaluation_is_not(pictures, split):
    plain, changed = (
        load_augmented(split, pictures, CPU, s) for s in (Settings(), Settings(**EVERYTHING))
    )
    for part in ("train", "val", "test", "global_test"):
        assert torch.equal(getattr(changed, part).inputs(ALL), getattr(plain, part).inputs(ALL))
    for a, b in zip(
        iterate_in_order(changed.train, 2, 5), iterate_in_order(plain.train, 2, 5), strict=True
    ):  # for a full gradient
        assert torch.equal(a.x, b.x)
    train = changed.train
    assert torch.equal(
        train.inputs(ALL, 3),
        Augmentation(KEY, **EVERYTHING)(plain.train.inputs(ALL), train.rows, train.party, 3),
    )
    assert train.inputs(ALL, 3).dtype == torch.float32
    assert (train.inputs(ALL, 3) != plain.train.inputs(ALL)).flatten(1).any(1).float().mean() > 0.9


def test_rows_of_a_batch_may_each_be_in_an_epoch_of_their_own(pictures):
    """Crop, flip, rotation and fresh noise; epoch 0 is evaluation and not augmented."""
    split = niidpart.make(
        pictures, "homo", n_parties=3, transforms=[("noise", {"sigma": 0.1, "fresh": True})]
    )
    examples = load_augmented(split, pictures, CPU, Settings(**EVERYTHING)).train
    at, epoch = torch.tensor([4, 0, 7, 4, 2, 9]), torch.tensor([1, 3, 0, 2, 500, 3])
    together = examples.inputs(at, epoch)
    for i, e in enumerate(epoch.tolist()):
        assert torch.equal(examples.inputs(at[i : i + 1], e)[0], together[i])
    assert torch.equal(examples.inputs(at, torch.full_like(at, 3)), examples.inputs(at, 3))
    assert not torch.equal(together[0], together[3])  # one row in two epochs


def test_without_the_settings_nothing_is_drawn(pictures, split):
    train = load_augmented(split, pictures, CPU).train
    assert train.prepare.augment is None
    assert torch.equal(train.inputs(ALL, 1), train.inputs(ALL, 0))


def test_noise_that_is_fixed_moves_with_the_picture_and_fresh_noise_and_the_mean_come_after(
    pictures,
):
    def made(fresh, **settings):
        transforms = [("noise", {"sigma": 0.3, "level": "std", "fresh": fresh})]
        return load_augmented(
            niidpart.make(pictures, "homo", n_parties=4, transforms=transforms),
            pictures,
            CPU,
            Settings(**settings),
        ).train

    def moved(examples, x):
        return Augmentation(KEY, **EVERYTHING)(x, examples.rows, examples.party, 5)

    both = EVERYTHING | {"normalise": "half"}
    fixed, fresh = made(False, **both), made(True, **both)
    assert torch.equal(fixed.inputs(ALL, 5), (moved(fixed, fixed.x) - 0.5) / 0.5)
    clean = fresh.x  # a split with transforms is read as floats
    field = fresh.prepare.noise[0](torch.zeros_like(clean), fresh.rows, fresh.party, 5)
    assert torch.equal(fresh.inputs(ALL, 5), (moved(fresh, clean) + field - 0.5) / 0.5)
    assert float(field.abs().max()) > 0.3


def test_a_run_trains_on_the_draws_of_its_epochs(pictures, split, train):
    base, seen = fltrain.algorithms.ALGORITHMS.find("fedavg")(), defaultdict(list)
    now = 0

    def plan(state, cohort, round, hyper):
        nonlocal now
        now = round
        return base.plan(state, cohort, round, hyper)

    def direction(task, local, batch):
        seen[now, batch.epoch].extend(map(tuple, batch.x.flatten(1).tolist()))
        return base.direction(task, local, batch)

    train(
        split,
        pictures,
        algorithm=replace(base, plan=plan, direction=direction),
        local_epochs=3,
        seed=7,
        **EVERYTHING,
    )
    examples = load_augmented(split, pictures, CPU, Settings(seed=7, **EVERYTHING)).train
    assert sorted(seen) == [(round, epoch) for round in (1, 2) for epoch in range(3)]
    for (round, epoch), batches in seen.items():
        assert sorted(batches) == sorted(
            map(tuple, examples.inputs(ALL, 3 * (round - 1) + epoch + 1).flatten(1).tolist())
        )


def test_parties_trained_as_one_keep_their_draws(pictures, split):
    settings = Settings(**EVERYTHING)
    loaded = load_federated(split, pictures, CPU, settings)
    apart, pooled = (loaded.prepare_for(settings, pooled=pooled) for pooled in (False, True))
    assert torch.equal(pooled.train.inputs(ALL, 4), apart.train.inputs(ALL, 4))


def test_a_resumed_run_ends_as_one_that_was_not_stopped(pictures, train, tmp_path, outcome):
    transforms = [("noise", {"sigma": 0.3, "level": "std", "fresh": True})]
    split = niidpart.make(pictures, "homo", n_parties=4, transforms=transforms)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"

    def copy(p):
        if isinstance(p, fltrain.RoundDone) and p.round == 2:
            shutil.copytree(whole, stopped)

    options = EVERYTHING | {"pad": "reflect", "normalise": "data", "noisy_test": True}
    train(split, pictures, out=whole, rounds=4, local_epochs=2, progress=copy, **options)
    assert outcome(stopped) != outcome(whole)
    resume(stopped, pictures)
    assert outcome(stopped) == outcome(whole)


@pytest.mark.parametrize("option", ["crop", "flip", "rotate"])
def test_a_table_cannot_be_cropped_flipped_or_turned(table, table_split, train, option):
    with pytest.raises(
        ValueError,
        match="crop, flip and rotate are for images; these examples are rows of 6 numbers",
    ):
        train(table_split, table, **{option: True if option == "flip" else 2})


def test_a_picture_can_be_mirrored_only_within_itself(pictures, split, train):
    with pytest.raises(
        ValueError,
        match=r"crop is 8; reflected padding of images of 8 x 9 pixels goes up to 7: lower --crop, or use --pad zero",
    ):
        train(split, pictures, crop=8, pad="reflect")
    assert len(train(split, pictures, crop=7, pad="reflect", rounds=1).history) == 1
    assert len(train(split, pictures, crop=8, rounds=1).history) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("pad", ["zero", "reflect"])
def test_a_gpu_draws_the_same_pictures(pad):
    x = torch.rand(200, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    rows, party, augment = (
        torch.arange(200),
        torch.arange(200) % 7,
        Augmentation(KEY, pad=pad, **EVERYTHING),
    )
    assert torch.equal(
        augment(x.cuda(), rows.cuda(), party.cuda(), 9).cpu(), augment(x, rows, party, 9)
    )
