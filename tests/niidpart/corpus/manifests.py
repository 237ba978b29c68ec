"""Attacks on what a file says of itself: JSON that is none, and fields that are not as they must be (rules 20 to 26)."""

import json
import zlib

import numpy as np

from .registry import canonical, edits, lies, put, read_manifest


def text(name, rule, change):
    """A change of the manifest's text."""

    def lie(manifest):
        return change(canonical(manifest))

    lie.__name__ = name
    lies(rule)(lie)


def field(name, rule, *keys, to, base="small"):
    """A change of one value of the manifest."""

    def lie(manifest):
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to

    lie.__name__ = name
    lies(rule, base=base)(lie)


def without(name, rule, *keys):
    def lie(manifest):
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]

    lie.__name__ = name
    lies(rule)(lie)


# ---------------------------------------------------------------- no data set of JSON


@edits(20)
def no_manifest(f):
    del f["manifest"]


@edits(20)
def manifest_of_numbers(f):
    put(f, "manifest", np.arange(5.0))


@edits(20)
def manifest_of_floats_that_spell_it(f):
    raw = f["manifest"][()].tobytes()
    put(f, "manifest", np.frombuffer(raw + b" " * (-len(raw) % 8), "<f8"))


@edits(20)
def manifest_of_two_axes(f):
    put(f, "manifest", f["manifest"][()].reshape(1, -1))


@edits(20)
def manifest_is_a_group(f):
    del f["manifest"]
    f.create_group("manifest")


@edits(20)
def manifest_of_no_bytes(f):
    put(f, "manifest", np.zeros(0, "u1"))


@edits(20)
def hint_that_is_no_json(f):
    put(f, "hint", np.frombuffer(b'{"root":NaN}', np.uint8))


@edits(25)
def hint_of_a_megabyte(f):
    put(f, "hint", np.frombuffer(b'{"root":"' + b"a" * (1 << 20) + b'"}', np.uint8))


@edits(25)
def manifest_of_a_gigabyte_of_spaces(f):
    raw = f["manifest"][()].tobytes()
    del f["manifest"]
    f.create_dataset(
        "manifest", shape=(1 << 30,), dtype="u1", chunks=(1 << 20,), compression="gzip"
    )
    f["manifest"][: len(raw)] = np.frombuffer(raw, np.uint8)
    blank = zlib.compress(b" " * (1 << 20))
    for start in range(1 << 20, 1 << 30, 1 << 20):
        f["manifest"].id.write_direct_chunk((start,), blank)


@edits(25)
def manifest_of_five_million_lists(f):
    raw = canonical(read_manifest(f) | {"more": [[]] * (5 << 20)})
    put(f, "manifest", np.frombuffer(raw.encode(), np.uint8))


# ---------------------------------------------------------------- no JSON

text("json_cut_off", 20, lambda t: t[:-1])
text("json_of_a_list", 20, lambda t: f"[{t}]")
text("json_of_a_number", 20, lambda t: "1")
text("json_of_a_space", 20, lambda t: " ")
text("json_with_a_tail", 20, lambda t: t + "{}")
text("json_not_ascii", 20, lambda t: t.replace('"dir"', '"dür"'))
text("json_of_utf_16", 20, lambda t: t.encode("utf-16").decode("latin-1"))
text("json_with_a_nul", 20, lambda t: t.replace('"dir"', '"d\0r"'))
text("json_key_twice", 20, lambda t: '{"format":1,' + t[1:])
text("json_inner_key_twice", 20, lambda t: t.replace('"beta":', '"beta":0.1,"beta":'))
text("json_key_twice_by_escapes", 20, lambda t: t.replace('"beta":', '"bet\\u0061":0.1,"beta":'))
text("json_nan", 20, lambda t: t.replace('"beta":0.1', '"beta":NaN'))
text("json_infinity", 20, lambda t: t.replace('"beta":0.1', '"beta":-Infinity'))
text("json_infinity_in_digits", 20, lambda t: t.replace('"beta":0.1', '"beta":1e999'))
text("json_integer_beyond_a_float", 20, lambda t: t.replace('"beta":0.1', '"beta":1' + "0" * 400))
text("json_number_of_5000_digits", 20, lambda t: t.replace('"seed":1', '"seed":' + "1" * 5000))
text("json_half_a_character", 20, lambda t: t.replace('"dir"', '"\\ud800"'))
text("json_half_a_character_in_a_key", 20, lambda t: t.replace('"beta":', '"\\udfff":1,"beta":'))
text("json_nested_without_end", 20, lambda t: "[" * 100_000)
text("json_objects_nested_without_end", 20, lambda t: '{"a":' * 100_000)
text("json_all_backslashes_and_quotes", 20, lambda t: '\\"' * 200_000)
text("json_all_quotes", 20, lambda t: '"' * 399_999)
text("json_a_million_keys_that_are_one", 20, lambda t: "{" + ",".join(['"a":1'] * 500_000) + "}")
text("json_with_a_comment", 20, lambda t: t + "// hello")
text("json_of_python", 20, lambda t: str(json.loads(t)))
field("json_nested_nine_deep", 20, "recipe", "params", "x", to=[[[[[[[]]]]]]])

# ---------------------------------------------------------------- format, requires

field("another_format", 21, "format", "name", to="niidpart-model")
without("no_format", 21, "format")
field("format_is_a_text", 21, "format", to="niidpart-split")
field("major_2", 21, "format", "major", to=2)
field("major_1_as_a_float", 21, "format", "major", to=1.0)
field("major_is_true", 21, "format", "major", to=True)
field("major_is_a_list", 21, "format", "major", to=[1])
without("no_major", 21, "format", "major")
field("minor_is_a_text", 21, "format", "minor", to="1")
field("unknown_requirement", 22, "requires", to=["encryption"])
field("overlap_and_an_unknown_requirement", 22, "requires", to=["overlap", "Overlap"])
field("requires_is_no_list", 22, "requires", to="overlap")
field("requires_a_list", 22, "requires", to=[[]])
field("requires_an_object", 22, "requires", to=[{"a": 1}])
without("no_requires", 22, "requires")

# ---------------------------------------------------------------- recipe

without("no_recipe", 23, "recipe")
field("recipe_is_a_list", 23, "recipe", to=[])
field("recipe_with_more", 23, "recipe", "hook", to="x")
without("recipe_with_less", 23, "recipe", "val")
field("n_parties_is_a_text", 23, "recipe", "n_parties", to="3")
field("n_parties_is_true", 23, "recipe", "n_parties", to=True)
field("n_parties_is_0", 23, "recipe", "n_parties", to=0)
field("n_parties_is_negative", 23, "recipe", "n_parties", to=-3)
field("seed_is_negative", 23, "recipe", "seed", to=-1)
field("seed_is_beyond_64_bits", 23, "recipe", "seed", to=1 << 64)
field("val_is_whole", 23, "recipe", "val", to=0)
field("val_and_test_leave_nothing", 23, "recipe", "val", to=0.9)
field("params_is_a_list", 23, "recipe", "params", to=[])
field("strategy_writes_to_the_terminal", 23, "recipe", "strategy", to="\x1b]0;hello\x07dir")
field("strategy_runs_backwards", 23, "recipe", "strategy", to="\u202erid")
field("transform_is_a_text", 23, "recipe", "transforms", to=["noise"])
field("transform_with_more", 23, "recipe", "transforms", 0, "hook", to="x")

field(
    "seventeen_transforms",
    27,
    "recipe",
    "transforms",
    to=[{"name": "noise", "params": {"sigma": 0.1, "level": "variance", "fresh": False}}] * 17,
)

# ---------------------------------------------------------------- source

without("no_source", 23, "source")
field("n_is_0", 23, "source", "n", to=0)
field("n_is_a_float", 23, "source", "n", to=60.0)
field("n_test_is_negative", 23, "source", "n_test", to=-1)
field("no_classes", 23, "source", "class_names", to=[])
field("class_names_are_numbers", 23, "source", "class_names", to=[0, 1, 2])
field("class_name_writes_to_the_terminal", 23, "source", "class_names", to=["0", "1", "\x1b[2J"])
field("labels_sha256_is_short", 23, "source", "labels_sha256", to="0" * 63)
field("labels_sha256_ends_in_a_line_break", 23, "source", "labels_sha256", to="0" * 64 + "\n")
field("content_sha256_is_a_word", 23, "source", "content_sha256", to="unknown")
field("revision_in_two_lines", 23, "source", "revision", to="1\n2")
field("ten_to_the_fifteen_examples", 26, "source", "n", to=10**15)
field("ten_to_the_hundred_examples", 26, "source", "n", to=10**100)
field("ten_to_the_fifteen_test_examples", 26, "source", "n_test", to=10**15)
field("class_name_of_a_megabyte", 26, "source", "class_names", to=["0", "1", "a" * (1 << 20)])

# ---------------------------------------------------------------- digests

without("no_digests", 24, "digests")
field("digests_are_a_list", 24, "digests", to=[])
without("no_digest_of_the_split", 24, "digests", "split")
field("digest_is_a_number", 24, "digests", "train", to=1)
field("digest_in_capitals", 24, "digests", "train", to="A" * 64)
field("digests_of_skew_are_a_list", 24, "skew", to=[])
field("digest_of_skew_is_short", 24, "skew", to={"map_beta": "0" * 64, "table": "0" * 63})
