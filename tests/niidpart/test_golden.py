"""Pin what a seed gives, for years.

A change of any literal here, or in a file of golden/, changes everybody's splits. It needs a line
in the changelog that says why.

No input comes from a generator of numpy's: labels are counted out, and data is niidpart's own.
"""

import hashlib
import json
import typing
from pathlib import Path

import numpy as np
import pytest

import niidpart
from niidpart.arithmetic import exact
from niidpart.arithmetic.rng import normal_field, stream
from niidpart.strategies import STRATEGIES
from niidpart.transforms import TRANSFORMS


def sha(array):
    """sha256 of the values, little-endian."""
    return hashlib.sha256(
        np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    ).hexdigest()


def rng():
    return stream(2024, "golden")


def bits(floats):
    return [x.hex() for x in np.asarray(floats).reshape(-1).tolist()]


WORDS = ["0x6f6ab9f759202a6d", "0x77f3142d002b2b3c", "0xaa53cc4c03156528"]
CHILD = ["0xa667a4681c0827ec", "0x3e3b1e7855ef45fc"]
UNIFORM = ["0x1.bdaae7dd6480ap-2", "0x1.dfcc50b400acap-2", "0x1.54a79898062adp-1"]
NORMAL = ["-0x1.4e0427a9fd58bp-3", "-0x1.43353299d1c16p-4", "0x1.b555ac66647dep-2"]
INTEGERS = [341, 748, 168, 345, 229, 3, 51, 989]
PERMUTATION = [11, 5, 8, 0, 1, 6, 3, 2, 7, 9, 10, 4]
GROUPED = [0, 6, 3, 9, 1, 7, 10, 4, 11, 5, 8, 2]
DIRICHLET = ["0x1.881943b9a6eb2p-3", "0x1.26d08069352dcp-1", "0x1.dca4baa1845dcp-3"]
FIELD = [
    "0x1.b0f00899f0987p+0",
    "-0x1.34612e2a0a896p+0",
    "-0x1.e20a2e0780420p-3",
    "0x1.924627f746992p+0",
    "-0x1.0e8f3b7135e7ep-2",
    "0x1.7995c85f27d7cp+0",
]


def test_words():
    assert [hex(w) for w in rng().words(3).tolist()] == WORDS
    assert [hex(w) for w in rng().child("x").words(2).tolist()] == CHILD


def test_uniform_and_normal():
    assert bits(rng().uniform(3)) == UNIFORM
    assert bits(rng().normal(3)) == NORMAL


def test_integers_and_permutations():
    assert rng().integers(1000, 8).tolist() == INTEGERS
    assert rng().permutation(12).tolist() == PERMUTATION
    assert rng().grouped_permutation(np.arange(12) % 3, 3).tolist() == GROUPED


def test_dirichlet():
    assert bits(rng().dirichlet(0.5, (3,))) == DIRICHLET


def test_normal_field():
    assert bits(normal_field(7, np.array([0, 1 << 33]), 3)) == FIELD


GRID = np.arange(1, 100_001)
LONG = {
    "words": lambda: rng().words(100_000),
    "uniform": lambda: rng().uniform(100_000),
    "normal": lambda: rng().normal(100_000),
    "integers": lambda: rng().integers(3 << 61, 100_000),  # a third of the words is rejected
    "permutation": lambda: rng().permutation(100_000),
    "grouped permutation": lambda: rng().grouped_permutation(GRID * 7 % 10, 10),
    "dirichlet 0.05": lambda: rng().dirichlet(
        0.05, (700, 100)
    ),  # beyond one block of gamma variates
    "dirichlet 1": lambda: rng().dirichlet(1.0, (700, 10)),
    "dirichlet 30": lambda: rng().dirichlet(30.0, (700, 10)),
    "normal field": lambda: normal_field((1 << 64) - 1, GRID[:1000], 77),
    "log": lambda: exact.log(GRID / 7),
    "exp": lambda: exact.exp(-GRID / 150),
    "normal quantile": lambda: exact.normal_quantile(GRID / 100_001),
    "normal quantile, far tail": lambda: exact.normal_quantile(exact.exp(-GRID[:7000] / 10)),
}

LONG_SHA = {
    "words": "d048bb7e1f6a10e2bdd9acfff09b078b44115cc5a6381de46039b2765c364106",
    "uniform": "51119421fa8948d8cd3fb70086687ca9b35b3ead66f26573e519622bb1d33e6b",
    "normal": "e1cede558883c76d7bec1d5d82021882187df7858732d9cece834c7fcc5a5716",
    "integers": "3a16d85a558583ccf9acb0d111edfd18ae83d6f603821f3af311820f361a79b8",
    "permutation": "af35903c81a0cff7c477805edbd6c12ef2a28e3751bdddaf4da5f44900693ea0",
    "grouped permutation": "7640ddc94f451de4b06354f1937fe1c1b412ccc2c6b343144e9470e5b3a45249",
    "dirichlet 0.05": "e9a0dfca531918045bc7281bec276fce77e40a93dd67081a875c607402db0db7",
    "dirichlet 1": "e756b76c54f78ae19bab24ed9da0f80b8a9e4576b5427300e5ece3a1de59a274",
    "dirichlet 30": "94cdb40ad3746795c2891cfe2c1a58ba4190c904f1a3315d1b5c22d8b1338d79",
    "normal field": "13034da8c1bb17ef1d858e96031a49c825f4f98bf8f5c69a8201bac6bcfa285e",
    "log": "9a3032ddb5461494bf5f3030f07e25de7cbfba480a069bd4e5e0979cb7eef85c",
    "exp": "f6511190b4a0bf50112279a2821d1297da04e9d776d97b717d66ebaadf2f9781",
    "normal quantile": "9870d142ce1b81d36effb99f3a6f8694bdd48ea4d68d3e7e120d7440f61dda47",
    "normal quantile, far tail": "08302a2edb389c87b1d83486ba276da23d6fe3226f79e76ae1791f9de07f29a0",
}


@pytest.mark.parametrize("name", LONG)
def test_long_draws_and_functions(name):
    assert sha(LONG[name]()) == LONG_SHA[name]


COUNTED = np.arange(3000) ** 2 * 7 % 1009 % 10  # ten classes of unequal size
DATA = {
    "counted": lambda: COUNTED,
    "strings": lambda: COUNTED.astype(str),
    "digits": lambda: niidpart.load("digits"),
    "fcube": lambda: niidpart.load("fcube"),
}
GROUPS = {
    "60 of unequal size": np.arange(3000) ** 2 % 1013 % 60,
    "8 of equal size": np.arange(3000) * 5 % 8,
}
HANDED_OVER = {
    "turned": COUNTED[::-1].copy(),
    "counted rows": (np.arange(3000 * 5) ** 2 * 31 % 977).reshape(3000, 5) / 977,
}
BESIDE = ("noisy_labels", "embeddings")
IMAGES = (np.arange(40 * 9, dtype=np.uint8) * 7).reshape(40, 3, 3)

# golden/NAME.json pins the splits of the strategy or transform NAME: {case: what was asked for and
# what came of it}. A new file there is found by itself.
FOLDER = Path(__file__).parent / "golden"
CASES = {
    case: pinned
    for path in sorted(FOLDER.glob("*.json"))
    for case, pinned in json.loads(path.read_text()).items()
}


def make(asked):
    """The split of a case. Data and groups are named in `asked`; the rest is as `make` takes it."""
    asked = dict(asked)
    data = DATA[asked.pop("data", "counted")]()
    groups = GROUPS.get(asked.pop("groups", None))
    handed_over = {name: HANDED_OVER[asked.pop(name)] for name in list(asked) if name in BESIDE}
    return niidpart.make(data, groups=groups, **handed_over, **asked)


def pin(asked):
    """What the golden file says of a case: every array of the split, and features if it has any."""
    split = make(asked)
    pinned = {"asked": asked, "split": split.digest, "train": split.train.digest}
    pinned |= {"draws": describe(split.draws), "columns": describe(split.columns)}
    if split.recipe.transforms:
        rows = np.arange(len(IMAGES))
        parties = range(split.n_parties)
        seen = [niidpart.transform(split, IMAGES, party, rows) for party in parties]
        if seen[0] is not IMAGES:
            pinned["features"] = sha(np.stack(seen))
        true = COUNTED[: len(IMAGES)]
        labels = [niidpart.relabel(split, true, party, rows) for party in parties]
        if labels[0] is not true:
            pinned["labels"] = sha(np.stack(labels))
    return pinned


def describe(arrays):
    return {
        name: f"{array.dtype.name} {list(array.shape)} {sha(array)}"
        for name, array in sorted(arrays.items())
    }


@pytest.mark.parametrize("case", CASES)
def test_splits(case):
    pinned = CASES[case]
    split = make(pinned["asked"])
    assert (split.digest, split.train.digest) == (pinned["split"], pinned["train"])


@pytest.mark.parametrize("case", CASES)
def test_draws_party_columns_and_features(case):
    assert pin(CASES[case]["asked"]) == CASES[case]


def ask_for(name):
    """A first case for a strategy or transform that is not pinned yet."""
    asked = {"strategy": name, "seed": 1}
    if name not in STRATEGIES.names():
        handed_over = {"noisy_labels": "turned"} if name == "human-noise" else {}
        return asked | {"n_parties": 7} | handed_over
    hints = typing.get_type_hints(STRATEGIES.find(name))
    if not typing.get_args(hints["n_parties"]):  # a Literal is the strategy's own number
        asked["n_parties"] = 7
    if "groups" in hints:
        asked["groups"] = "60 of unequal size"
    if "features" in hints:
        asked["embeddings"] = "counted rows"
    return asked


@pytest.mark.parametrize("name", STRATEGIES.names() + TRANSFORMS.names())
def test_every_strategy_and_transform_is_pinned(name):
    path = FOLDER / f"{name}.json"
    if not path.exists():
        text = json.dumps({name: pin(ask_for(name))}, indent=2)
        pytest.fail(f"{name} has no golden split; save this as {path}:\n{text}", pytrace=False)
    recipes = [make(pinned["asked"]).recipe for pinned in json.loads(path.read_text()).values()]
    used = [(recipe.strategy, *(t.name for t in recipe.transforms)) for recipe in recipes]
    assert any(name in names for names in used)


NOISE_SEED = [
    16877786197502391701,
    14574875337386451659,
    11338638367059041145,
    13500278933959500194,
    15376870378082511001,
    9122160104945000982,
    3027491350620469300,
]
NOISE_STD = [
    "0x1.e990cdad55ed3p-4",
    "0x1.5a2cd8c69d61bp-3",
    "0x1.a7f9ed76bb33fp-3",
    "0x1.e990cdad55ed3p-3",
    "0x1.11acee560242ap-2",
    "0x1.2bcbe794f93b1p-2",
    "0x1.43d136248490fp-2",
]
NOISY = "1c6eff091e24f53336bc0a16a8e03c4e9eeac16331e4402d3dd2cae7beaa4318"


def test_noise_on_features():
    split = make(CASES["noise"]["asked"])
    assert split.columns["noise_seed"].tolist() == NOISE_SEED
    assert bits(split.columns["noise_std"]) == NOISE_STD
    assert sha(niidpart.transform(split, IMAGES, 6, np.arange(40))) == NOISY


NOISY_IN_SPACE = "425d19756965b35c9d8d79a5779973c8c44b4fcdecdbc403cbd94562acb827c7"


def test_noise_in_space_on_features():
    split = make(CASES["noise-space"]["asked"])
    assert sha(niidpart.transform(split, IMAGES, 4, np.arange(40))) == NOISY_IN_SPACE


CONTENT = [
    "e4832b63e15f1327cabb7cabf2ed4e9a79f723c7769908461019cffff1db62d7",
    "ede45ce6f084bbfad1a44e7496f7dc52004b0b339b1483edbb2c2fc8c3ae0d39",
]
LABELS = [
    "cb6863cc760a900d01be551594691a090fd43e24c11ee63feaaf73315ad5e1d7",
    "3381c901548b14c9c8a72e846146c19a1be983c09421739bc4a0a2ed9a54b584",
]


def test_data_of_our_own():
    assert [niidpart.load(name).source.content_sha256 for name in ("digits", "fcube")] == CONTENT
    assert [niidpart.load(name).source.labels_sha256 for name in ("digits", "fcube")] == LABELS


WITHOUT_SIMD = """
import hashlib, numpy as np, niidpart
from niidpart.arithmetic.rng import stream
rng = stream(2024, "golden")
print(hashlib.sha256(rng.dirichlet(0.05, (700, 100)).astype("<f8").tobytes()).hexdigest())
print(niidpart.make(np.arange(3000) ** 2 * 7 % 1009 % 10, "dir", n_parties=7, seed=1).train.digest)
"""


def test_the_same_bits_come_without_vector_instructions(python, monkeypatch):
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not found:
        pytest.skip("numpy uses no vector instructions here beyond its baseline")
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", " ".join(found))
    done = python(WITHOUT_SIMD)
    assert done.stdout.split() == [LONG_SHA["dirichlet 0.05"], CASES["dir"]["train"]], done.stderr
