"""Attacks on what the arrays say, in a container without a fault (rules 30 to 54)."""

import json
import zlib

import numpy as np

from .manifests import field, without
from .registry import array_sha, canonical, edits, put, put_manifest, read_manifest

# ---------------------------------------------------------------- types and shapes


@edits(30)
def no_train(f):
    del f["train"]


@edits(30)
def no_indices(f):
    del f["val/indices"]


@edits(30)
def indices_is_a_group(f):
    del f["train/indices"]
    f.create_group("train/indices")


@edits(30, redigest=True)
def wide_indices(f):
    put(f, "train/indices", f["train/indices"][()].astype("<i8"))


@edits(30, redigest=True)
def unsigned_indptr(f):
    put(f, "train/indptr", f["train/indptr"][()].astype("<u8"))


@edits(30, redigest=True)
def float_counts(f):
    put(f, "train/counts", f["train/counts"][()].astype("<f8"))


@edits(30)
def indices_of_two_axes(f):
    put(f, "train/indices", f["train/indices"][()].reshape(-1, 1))


@edits(30, redigest=True)
def counts_of_another_shape(f):
    put(f, "train/counts", f["train/counts"][()].T[:2].copy())


field("another_number_of_parties", 30, "recipe", "n_parties", to=4)
field("parties_for_8_petabytes", 30, "recipe", "n_parties", to=10**15)
field("parties_for_16_gigabytes", 30, "recipe", "n_parties", to=2 * 10**9)
field("parties_beyond_all_integers", 30, "recipe", "n_parties", to=10**200)
field("another_number_of_classes", 30, "source", "class_names", to=["a", "b"])
field("examples_beyond_32_bits", 30, "source", "n", to=1 << 31)
field("examples_for_2_gigabytes", 51, "source", "n", to=(1 << 31) - 1)


@edits(36)
def more_rows_than_examples(f):
    put(f, "train/indices", np.arange(61, dtype="<i4"))


@edits(36)
def half_a_gigabyte_of_rows(f):  # in half a megabyte, if it were read
    del f["train/indices"]
    f.create_dataset(
        "train/indices",
        shape=(1 << 27,),
        dtype="<i4",
        chunks=(1 << 24,),
        compression="gzip",
        compression_opts=9,
    )
    zeros = zlib.compress(bytes(1 << 26))
    for start in range(0, 1 << 27, 1 << 24):
        f["train/indices"].id.write_direct_chunk((start,), zeros)


@edits(36, base="overlap")
def more_rows_than_examples_and_parties(f):
    put(f, "train/indices", np.zeros(181, "<i4"))


@edits(37)
def a_draw_of_a_gigabyte(f):
    f.create_dataset(
        "draws/odd",
        shape=(1 << 17, 1 << 10),
        dtype="<f8",
        chunks=(1 << 12, 1 << 10),
        compression="gzip",
        compression_opts=9,
    )
    zeros = zlib.compress(bytes(1 << 25))
    for start in range(0, 1 << 17, 1 << 12):
        f["draws/odd"].id.write_direct_chunk((start, 0), zeros)


@edits(37)
def a_hundred_draws(f):
    for i in range(100):
        put(f, f"draws/{i}", np.zeros(1))


@edits(42)
def three_hundred_columns(f):
    for i in range(300):
        put(f, f"parties/{i}", np.zeros(3))


@edits(40, redigest=True)
def column_of_the_wrong_length(f):
    put(f, "parties/noise_std", np.zeros(4))


@edits(40, redigest=True)
def column_of_two_axes(f):
    put(f, "parties/noise_std", np.zeros((3, 1)))


# ---------------------------------------------------------------- who holds what


@edits(31, redigest=True)
def indptr_falls(f):
    f["train/indptr"][1] = int(f["train/indptr"][2]) + 1


@edits(31, redigest=True)
def indptr_does_not_begin_at_zero(f):
    f["train/indptr"][0] = 1


@edits(31, redigest=True)
def indptr_ends_beyond_the_indices(f):
    f["train/indptr"][3] = len(f["train/indices"]) + 1


@edits(31, redigest=True)
def indptr_is_negative(f):
    f["train/indptr"][1] = -1


@edits(31, redigest=True)
def indptr_whose_steps_run_over(f):
    f["train/indptr"][1:3] = [-(1 << 63), (1 << 63) - 1]


@edits(32, redigest=True)
def index_beyond_the_data(f):
    f["train/indices"][-1] = 60


@edits(32, redigest=True)
def negative_index(f):
    f["train/indices"][0] = -1


@edits(32, redigest=True)
def indices_of_a_party_fall(f):
    f["train/indices"][:2] = f["train/indices"][:2][::-1]


@edits(32, redigest=True)
def one_example_twice_in_a_party(f):
    f["train/indices"][1] = f["train/indices"][0]


@edits(32, redigest=True, base="overlap")
def one_example_twice_in_a_party_where_parties_share(f):
    f["train/indices"][1] = f["train/indices"][0]


field("fewer_examples_than_are_held", 32, "source", "n", to=59)


@edits(33, redigest=True)
def counts_are_too_many(f):
    f["train/counts"][0, 0] = f["train/counts"][0, 0] + 1


@edits(33, redigest=True)
def counts_are_negative(f):
    f["train/counts"][0] = f["train/counts"][0] + np.array([-100, 100, 0], "i4")


@edits(33, redigest=True)
def counts_whose_sum_runs_over(f):
    f["train/counts"][0] = [(1 << 31) - 1, (1 << 31) - 1, int(f["train/indptr"][1]) + 2]


@edits(34, redigest=True)
def one_example_at_two_parties(f):
    indptr, indices = f["train/indptr"][()], f["train/indices"][()]
    mine = indices[indptr[1] : indptr[2]].copy()
    mine[0] = indices[0]
    f["train/indices"][indptr[1] : indptr[2]] = np.sort(mine)


@edits(34, redigest=True)
def one_example_in_train_and_test(f):
    mine = f["test/indices"][: int(f["test/indptr"][1])].copy()
    mine[0] = f["train/indices"][0]
    f["test/indices"][: len(mine)] = np.sort(mine)


field("overlap_that_is_not_announced", 34, "requires", to=[], base="overlap")


@edits(34, redigest=True, base="overlap")
def one_example_in_train_and_test_where_parties_share(f):
    f["test/indices"][0] = 4


field("overlap_announced_where_there_is_none", 35, "requires", to=["overlap"])

# ---------------------------------------------------------------- columns of transforms


@edits(41, redigest=True)
def column_of_a_transform_is_missing(f):
    del f["parties/noise_std"]


@edits(43, redigest=True)
def column_of_a_transform_is_not_finite(f):
    put(f, "parties/noise_std", np.full(3, np.nan))


@edits(43, redigest=True)
def column_of_a_transform_is_out_of_its_range(f):
    put(f, "parties/noise_std", np.array([0.0, 1.0, -1e9]))


@edits(41, redigest=True)
def column_of_a_transform_is_of_another_type(f):
    put(f, "parties/noise_seed", np.zeros(3))


def _of_a_transform(name, params):
    def change(f):
        manifest = read_manifest(f)
        manifest["recipe"]["transforms"][0]["params"] = params
        put_manifest(f, manifest)

    change.__name__ = name
    edits(41, redigest=True)(change)


_of_a_transform("transform_without_options", {})
_of_a_transform(
    "transform_with_an_option_too_many",
    {"sigma": 0.1, "level": "variance", "fresh": False, "hook": "x"},
)
_of_a_transform("transform_of_a_text", {"sigma": "x", "level": "variance", "fresh": False})
_of_a_transform("transform_below_zero", {"sigma": -1.0, "level": "variance", "fresh": False})
_of_a_transform("transform_of_a_large_integer", {"sigma": 10**299, "level": [], "fresh": False})

# ---------------------------------------------------------------- digests


@edits(50)
def another_draw(f):
    f["draws/proportions"][0, 0] = 0.5


@edits(50)
def a_draw_that_the_manifest_does_not_know(f):
    put(f, "draws/more", np.arange(3))


@edits(50)
def a_draw_is_gone(f):
    del f["draws/moved"]


@edits(50)
def two_counts_exchanged(f):
    f["train/counts"][0] = f["train/counts"][0][::-1]


without("no_digest_of_a_part", 50, "digests", "train")
field("another_digest_of_a_part", 50, "digests", "train", to="0" * 64)
field("another_digest_of_counts", 50, "digests", "train/counts", to="0" * 64)
field("another_digest_of_a_column", 50, "digests", "parties/noise_std", to="0" * 64)
field("a_digest_of_nothing", 50, "digests", "draws/more", to="0" * 64)
field("a_digest_of_a_file", 50, "digests", "../../etc/passwd", to="0" * 64)
field("another_digest_of_the_split", 51, "digests", "split", to="0" * 64)
field("another_seed", 51, "recipe", "seed", to=2)
field("another_revision", 51, "source", "revision", to="2")
field("code_in_place_of_the_strategy", 51, "recipe", "strategy", to="os:system")

# ---------------------------------------------------------------- skew


def _skew(table=lambda t: t, beta=lambda b: b):
    """Other skew in the file, with digests that fit."""

    def change(f):
        raw, betas = table(json.loads(f["skew/table"][()].tobytes())), beta(f["skew/map_beta"][()])
        put(f, "skew/map_beta", betas)
        put(
            f,
            "skew/table",
            np.frombuffer((raw if isinstance(raw, str) else canonical(raw)).encode(), np.uint8),
        )
        sums = {name: array_sha(f[f"skew/{name}"][()]) for name in ("map_beta", "table")}
        put_manifest(f, read_manifest(f) | {"skew": sums})

    return change


def _attack(name, rule, change):
    change.__name__ = name
    edits(rule)(change)


_attack("skew_of_two_axes", 52, _skew(beta=lambda b: b.reshape(1, -1)))
_attack("skew_of_another_number_of_parties", 52, _skew(beta=lambda b: b[:2]))
_attack("skew_of_integers", 52, _skew(beta=lambda b: np.arange(3)))
_attack("skew_table_of_two_megabytes", 52, _skew(table=lambda t: canonical(t) + " " * (2 << 20)))
_attack("skew_that_is_not_finite", 53, _skew(beta=lambda b: b * np.inf))
_attack("skew_table_without_versions", 53, _skew(table=lambda t: {"measures": [{"name": "emd"}]}))
_attack("skew_table_that_is_a_list", 20, _skew(table=lambda t: "[]"))
_attack("skew_table_with_a_key_twice", 20, _skew(table=lambda t: '{"a":1,"a":2}'))


@edits(52)
def skew_without_a_table(f):
    del f["skew/table"]


@edits(54)
def skew_is_gone(f):
    del f["skew"]


@edits(54)
def another_skew(f):
    f["skew/map_beta"][0] = 7.0


without("no_digest_of_skew", 54, "skew")
