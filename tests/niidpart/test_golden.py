"""What a seed gives, for years: a change of any literal here changes everybody's splits, and needs a line in the changelog that says why.

No input comes from a generator of numpy's: labels are counted out, and data is niidpart's own.
"""

import hashlib

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
GROUPS = np.arange(3000) ** 2 % 1013 % 60  # of unequal size
SPLITS = {
    "homo": lambda: niidpart.make(COUNTED, "homo", n_parties=7, seed=1),
    "dir": lambda: niidpart.make(COUNTED, "dir", n_parties=7, seed=1),
    "dir, strong, with moves": lambda: niidpart.make(
        COUNTED, "dir", n_parties=50, beta=0.05, min_size=20, seed=2**64 - 1
    ),
    "labels": lambda: niidpart.make(COUNTED, "labels", n_parties=13, seed=1),
    "labels, fewer parties than classes": lambda: niidpart.make(
        COUNTED, "labels", n_parties=4, k=2, seed=1
    ),
    "quantity": lambda: niidpart.make(COUNTED, "quantity", n_parties=7, beta=0.3, seed=1),
    "noise": lambda: niidpart.make(COUNTED, "noise", n_parties=7, sigma=0.1, seed=1),
    "noise as the authors' code has it": lambda: niidpart.make(
        COUNTED, "noise", n_parties=7, level="std", fresh=True, seed=1
    ),
    "dir, noise, val and test": lambda: niidpart.make(
        COUNTED, "dir", n_parties=7, seed=1, val=0.1, test=0.2, transforms=[("noise", {})]
    ),
    "dir-balanced": lambda: niidpart.make(COUNTED, "dir-balanced", n_parties=7, seed=1),
    "dir-balanced, where nothing is left of a draw": lambda: niidpart.make(
        COUNTED, "dir-balanced", n_parties=7, beta=1e-4, seed=1
    ),
    "party-dir": lambda: niidpart.make(COUNTED, "party-dir", n_parties=7, seed=1),
    "party-dir, strong, of unequal size": lambda: niidpart.make(
        COUNTED, "party-dir", n_parties=50, beta=0.02, spread=1.0, seed=1
    ),
    "shards": lambda: niidpart.make(COUNTED, "shards", n_parties=7, seed=1),
    "group": lambda: niidpart.make(COUNTED, "group", n_parties=7, seed=1, groups=GROUPS),
    "group, by size, without small ones": lambda: niidpart.make(
        COUNTED, "group", n_parties=7, seed=1, groups=GROUPS, balance="examples", min_group=40
    ),
    "group, one a party": lambda: niidpart.make(
        COUNTED, "group", n_parties=8, groups=np.arange(3000) * 5 % 8
    ),
    "hierarchical": lambda: niidpart.make(COUNTED, "hierarchical", seed=1),
    "hypergeometric": lambda: niidpart.make(COUNTED, "hypergeometric", seed=1),
    "hypergeometric, dropped": lambda: niidpart.make(
        COUNTED, "hypergeometric", n_parties=13, overflow="drop", n_val=5, seed=1
    ),
    "niidbench, dir": lambda: niidpart.make(COUNTED, "niidbench", seed=1),
    "niidbench, labels": lambda: niidpart.make(
        COUNTED, "niidbench", rule="labels", k=3, n_parties=13, seed=1
    ),
    "niidbench, quantity": lambda: niidpart.make(COUNTED, "niidbench", rule="quantity", seed=1),
    "niidbench, homo": lambda: niidpart.make(COUNTED, "niidbench", rule="homo", seed=1),
    "noise-space": lambda: niidpart.make(COUNTED, "noise-space", n_parties=7, seed=1),
    "a named recipe": lambda: niidpart.make(COUNTED, recipe="map004/severe-party"),
    "strings": lambda: niidpart.make(COUNTED.astype(str), "dir", n_parties=7, seed=1),
    "digits": lambda: _of("digits", "dir"),
    "fcube": lambda: _of("fcube", "fcube", val=0.1),
}

SPLIT_DIGESTS = {
    "homo": (
        "d4eaba4f3b4cda572118171e7abb116deac202985f6e405d9fbe68ebcf0ab336",
        "1cdc3d90624bbee49b8c5d9c9e918bcebd9425f36d7991d41eadbfbb8d591087",
    ),
    "dir": (
        "ed75604416a2c2c83dc457ad32a1f83b0b640df00048ad6e4dd3a43f48202d1e",
        "ce37b2c613b7c8b63e33e7639c1540c81dd9ead727fceaa51ba74e2e76fefb46",
    ),
    "dir, strong, with moves": (
        "475589832f28d624001cec8956f716078d095ddfb6c11d6717a0b3933bcdcf41",
        "71578200505e5a27becd12c413651da9bda74be2739d836d3abddc299594b383",
    ),
    "labels": (
        "7a7b301499019217d927d206edc6c23559c247f6f3080dfa93dee9eff9bbac0a",
        "0cb981b9df5354fd1eb9d6a9f11eb378a73cd2cc888639a7dae701c0c371f895",
    ),
    "labels, fewer parties than classes": (
        "260964c2ff197a34eb59add3eb01319cbe12f7752b199391817ffb334a2c2411",
        "c9c354d615be3ef37680f6a34990e00334fdca9d48434082c297edd0f2c434d1",
    ),
    "quantity": (
        "87adb991216de18bbdb43867871f0b94d38426d526c14e3124c9927c6782e364",
        "496e2b2e9773e42b817eaa799816acc7f7e00c206c92a1c02554490e8d42914d",
    ),
    "noise": (
        "be84d192e1f1373d151d54cddab48714e3dd94c20d0a39cfc713b2756e64c628",
        "1cdc3d90624bbee49b8c5d9c9e918bcebd9425f36d7991d41eadbfbb8d591087",
    ),
    "noise as the authors' code has it": (
        "81cb65d82726ccb6f1e03f5ba8854383291172485d7a479aa2f15ccc379b870f",
        "1cdc3d90624bbee49b8c5d9c9e918bcebd9425f36d7991d41eadbfbb8d591087",
    ),
    "dir, noise, val and test": (
        "edeebc5dc0521336bf4a931bd94959de0af6f27a0156f7a6687665bc1a69fb12",
        "ee9f080cd66d979335fffd51489813767227819d13aa45d9d404d87eea27fa53",
    ),
    "dir-balanced": (
        "1041c51ab36dab506b929b092d1c4499994c70cbf7be66492037d3d604aa1b51",
        "8ad600fd82c23a06cac6bd4309637f469cdbac880663b0a9e76c3f6131e3a562",
    ),
    "dir-balanced, where nothing is left of a draw": (
        "8c2208963d2e7094b748560809b9a131d9c12747ad674ddb8f0061a9b105daa2",
        "50fe74cfafa7ea83ef886646bad6c9c2bce70725e00529f7ae3dd8203deb9f17",
    ),
    "party-dir": (
        "ff3069637e76a4ae6c421277b86158a56383c6112bd4886a9cd1f5ebcd014aa0",
        "b375642c5a35b8304db66c6bfd5f3cc8b92810c1b4f0ec368ad56ea2a9b09a85",
    ),
    "party-dir, strong, of unequal size": (
        "53888a36f2abc5d4c0d72e1294a2f0a686b6f7c35d0b3bf001951dde8153a80d",
        "e4bd5601a12f92b0609b4bd552d340c91c8e202f6b3bdd97da6636ba108dd6ec",
    ),
    "shards": (
        "282ba67be769a2afb12be7822f904bb1aea73806db970477ae54d7b75dab6429",
        "9b6bf4a307059cd79e59162cb16e61ed8a747fea96599c64663edc3468e8cbcd",
    ),
    "group": (
        "7068c32c1d8d538c70a76a5edd9d252527462f9158a128708d66c69b20c7130b",
        "def57c29a08916ddbcc96245e8e38b465da329bc5d471f31a9c2b305bd2280a9",
    ),
    "group, by size, without small ones": (
        "a42dfb209a736b71a2a92fcd3ed102a441497d45cae50953fa5ccdd2b165a0f4",
        "46af54f8e508f3ed62dfbc5105093b3050a766ef006cb33583afbae7693ba3eb",
    ),
    "group, one a party": (
        "b0231278c2001a926590f07fd85ae4615b9e97a9d978c6a361c5252396fe4be4",
        "2d5bb9832d6c4714d24702c8c191c4306413e69a53d4e94dbcf83f885f90328d",
    ),
    "hierarchical": (
        "50acfc7b44231eb10a636fa3758fb7039f6539a09a187340a28151c6b7ff032d",
        "03867a2a49140b77a6e2cc5c271aee0b0195413f2d473611edcaaecb69010d4d",
    ),
    "hypergeometric": (
        "ef680c3b19fddbb0aff1473c4b2e0c81b4e8c47aec062b37a87ecc97165ac80a",
        "6ef3f8690cba872bed60784443580bfff53000fce3703ef058117fe5a68d626f",
    ),
    "hypergeometric, dropped": (
        "253b830aa87568be8f8b4986c6e38a7980bb94f4e28b2895ccad9038c7b38d5e",
        "bec84f6ec83a8b9d6a1487320983e17eaaba19a2dfb54733bb5ba55efca2f0ee",
    ),
    "niidbench, dir": (
        "cf7a8412f82b9bb397bcfec0ffd5f13e04d84159f66ef9c682a5b2b0cbf95989",
        "a6907af9bd11a7a82c174aa0003436ce5309b14b6cd096b04390cc29fac868a5",
    ),
    "niidbench, labels": (
        "2837af3a9c95a941d784bcd3ef655d1df85f6ee37d3abbc79dc3879107323c17",
        "a3db4248ed0bd406a135b07a2583f7635a24d6a7ee932fd161f451420c4725a1",
    ),
    "niidbench, quantity": (
        "ff199932fbbdd87ee979e1f1099518cf9a1c3b6fd1b04a6262326c73df250f63",
        "d6adbe2d41ab05d0bcc94dc6d7105af8f61046a490c1cb389bb9fe08d44eecc4",
    ),
    "niidbench, homo": (
        "3f54cd96777bc7cb6449e4a570f75d9832e024479bef6f3425901ae893579025",
        "8a165881bfc3eb3adc02f113a9c1a4db42c1b32f8d96f76e874d052a23aef42b",
    ),
    "noise-space": (
        "49446d176dd076923f33c4d3bc585d0016057be1dda3646ee23d5601d0f9e5fa",
        "1cdc3d90624bbee49b8c5d9c9e918bcebd9425f36d7991d41eadbfbb8d591087",
    ),
    "a named recipe": (
        "4dcd40f000aef27a1ac145df9b5081b2bd4f43101677c6edfcfbe6ecd535ed15",
        "2efad705bd1f9ecc1ae7ad355f74aeb5c6977f51e1bee0b0f404a56d5dd8b4c3",
    ),
    "strings": (
        "ed75604416a2c2c83dc457ad32a1f83b0b640df00048ad6e4dd3a43f48202d1e",
        "ce37b2c613b7c8b63e33e7639c1540c81dd9ead727fceaa51ba74e2e76fefb46",
    ),
    "digits": (
        "3f9ef6627b15d38df3ba40626277f52e336c7e92fa83c3bc0d52a175f104f251",
        "b22e7153242b6e8714fe70c338b743437cf0ecb996ec7cc000ef4ec234bea3d5",
    ),
    "fcube": (
        "2c87ea45eecf04464d6e073ac4c99fe3acab8d034c14df1a34e509df96b657cd",
        "44e5313bc181db1f18ee2f287f95d106a0f14cac229062cfbc13c72e4293ee4d",
    ),
}


def _of(name, strategy, **keywords):
    data = niidpart.load(name)
    return niidpart.make(data, strategy, **keywords)


@pytest.mark.parametrize("name", SPLITS)
def test_splits(name):
    split = SPLITS[name]()
    assert (split.digest, split.train.digest) == SPLIT_DIGESTS[name]


def test_every_strategy_and_transform_is_pinned():
    splits = [split() for split in SPLITS.values()]
    assert {split.recipe.strategy for split in splits} == set(STRATEGIES.names())
    assert {t.name for split in splits for t in split.recipe.transforms} == set(TRANSFORMS.names())


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
    split = SPLITS["noise"]()
    x = (np.arange(40 * 9, dtype=np.uint8) * 7).reshape(40, 3, 3)
    assert split.columns["noise_seed"].tolist() == NOISE_SEED
    assert bits(split.columns["noise_std"]) == NOISE_STD
    assert sha(niidpart.transform(split, x, 6, np.arange(40))) == NOISY


NOISY_IN_SPACE = "425d19756965b35c9d8d79a5779973c8c44b4fcdecdbc403cbd94562acb827c7"


def test_noise_in_space_on_features():
    split = SPLITS["noise-space"]()
    x = (np.arange(40 * 9, dtype=np.uint8) * 7).reshape(40, 3, 3)
    assert sha(niidpart.transform(split, x, 4, np.arange(40))) == NOISY_IN_SPACE


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
    assert done.stdout.split() == [LONG_SHA["dirichlet 0.05"], SPLIT_DIGESTS["dir"][1]], done.stderr
