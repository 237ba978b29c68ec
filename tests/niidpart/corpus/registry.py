"""What an attack is: a function that turns a good split file into a bad one, with the rule of docs/format.md that the bad one breaks."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np

import niidpart
from niidpart.strategies import Rows


@dataclass(frozen=True)
class Attack:
    """rules: those that `check` names, all of them; may: those of which it names one. make(good files by name, path) puts the file there."""

    name: str
    rules: frozenset[int]
    make: Callable[[dict[str, Path], Path], None]
    may: bool = False


NEW = ("v110", "v110")  # structures with checksums, as niidpart writes them
MOST_PARTIES = 1 << 20  # that the digest of an empty part is made for
ATTACKS: dict[str, Attack] = {}


def add(
    name: str, rules: set[int], make: Callable[[dict[str, Path], Path], None], may: bool = False
) -> None:
    assert name not in ATTACKS, f"two attacks have the name {name}"
    ATTACKS[name] = Attack(name, frozenset(rules), make, may)


def edits(*rules: int, redigest: bool = False, base: str = "small"):
    """A function of the open HDF5 file. redigest: its digests are made anew, so that nothing but this rule stands in the way."""

    def register(edit):
        def make(good, path):
            shutil.copy(good[base], path)
            with h5py.File(path, "r+", libver=NEW) as f:
                edit(f)
                if redigest:
                    put_manifest(f, digested(f))

        add(edit.__name__, set(rules), make)
        return edit

    return register


def lies(*rules: int, base: str = "small"):
    """A function of the manifest, which it changes, or for which it returns a text."""

    def register(change):
        def make(good, path):
            shutil.copy(good[base], path)
            with h5py.File(path, "r+", libver=NEW) as f:
                manifest = read_manifest(f)
                put_manifest(f, change(manifest) or manifest)

        add(change.__name__, set(rules), make)
        return change

    return register


def bytewise(*rules: int, base: str = "small", may: bool = False):
    """A function from the bytes of a good file to those of the bad one."""

    def register(change):
        add(
            change.__name__,
            set(rules),
            lambda good, path: path.write_bytes(change(good[base].read_bytes())) and None,
            may,
        )
        return change

    return register


def places(*rules: int):
    """A function that puts something at a path."""

    def register(put_there):
        add(put_there.__name__, set(rules), lambda good, path: put_there(path))
        return put_there

    return register


# ---------------------------------------------------------------- good files

LABELS = np.arange(60) * 7 % 3


def small() -> niidpart.FederatedSplit:
    """Everything that a file can hold: three parts, draws, moved rows, columns of a transform, a hint."""
    options = {
        "beta": 0.1,
        "min_size": 15,
        "val": 0.1,
        "test": 0.2,
        "transforms": [("noise", {"sigma": 0.1})],
    }
    data = replace(niidpart.from_arrays(None, LABELS), root="somewhere")
    return niidpart.make(data, "dir", n_parties=3, seed=1, **options)


def overlapping() -> niidpart.FederatedSplit:
    """Two parties share examples in train and in val."""
    from niidpart.making.owners import build_parts

    pairs = {
        "train": (np.array([0, 0, 0, 1, 1, 2]), np.array([4, 9, 7, 9, 4, 11])),
        "val": (np.array([0, 2]), np.array([20, 20])),
        "test": (np.array([1]), np.array([30])),
    }
    recipe = replace(
        small().recipe, strategy="of a user", params={}, transforms=(), val=0.0, test=0.0
    )
    result = Rows(
        {name: (p.astype(np.int64), r.astype(np.int64)) for name, (p, r) in pairs.items()},
        {},
        {"level": np.array([1.0, 2.0, 3.0])},
    )
    parts = build_parts(result, recipe, LABELS.astype(np.int64), 3)
    return replace(small(), recipe=recipe, **parts, draws=result.draws, columns=result.columns)


def old_container(good: Path, path: Path) -> None:
    """The same content in structures of the first HDF5, which have no checksums."""

    def copy(name, item):
        if isinstance(item, h5py.Dataset):
            f.create_dataset(name, data=item[()], chunks=item.chunks, compression="gzip")

    with h5py.File(good) as source, h5py.File(path, "w", libver="earliest") as f:
        source.visititems(copy)


def good_files(folder: Path) -> dict[str, Path]:
    """The files that attacks start from."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        name: niidpart.write(split(), folder / f"{name}.h5")
        for name, split in (("small", small), ("overlap", overlapping))
    }
    old_container(files["small"], folder / "old.h5")
    return files | {"old": folder / "old.h5"}


# ---------------------------------------------------------------- tools


def patched(whole: bytes, at: int, new: bytes) -> bytes:
    """`new` written at `at` in the header of an object, whose checksum is made to fit."""
    raw = bytearray(whole)
    raw[at : at + len(new)] = new
    start = whole.rindex(b"OHDR", 0, at)
    flags = raw[start + 5]
    data = start + 6 + (16 if flags & 32 else 0) + (4 if flags & 16 else 0)
    width = 1 << (flags & 3)
    end = data + width + int.from_bytes(raw[data : data + width], "little")
    assert at + len(new) <= end, "this is not in the header"
    raw[end : end + 4] = lookup3(bytes(raw[start:end])).to_bytes(4, "little")
    return bytes(raw)


def lookup3(data: bytes) -> int:
    """Jenkins' hash, with which HDF5 guards its structures."""
    mask = 0xFFFFFFFF

    def turn(x, n):
        return (x << n | x >> (32 - n)) & mask

    a = b = c = (0xDEADBEEF + len(data)) & mask
    blocks = [data[i : i + 12] for i in range(0, len(data), 12)] or [b""]
    for i, block in enumerate(blocks):
        x, y, z = (int.from_bytes(block[j : j + 4], "little") for j in (0, 4, 8))
        a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
        if i < len(blocks) - 1:
            a = (a - c) & mask ^ turn(c, 4)
            c = (c + b) & mask
            b = (b - a) & mask ^ turn(a, 6)
            a = (a + c) & mask
            c = (c - b) & mask ^ turn(b, 8)
            b = (b + a) & mask
            a = (a - c) & mask ^ turn(c, 16)
            c = (c + b) & mask
            b = (b - a) & mask ^ turn(a, 19)
            a = (a + c) & mask
            c = (c - b) & mask ^ turn(b, 4)
            b = (b + a) & mask
    if not data:
        return c
    for n, (i, j) in zip(
        (14, 11, 25, 16, 4, 14, 24),
        ((2, 1), (0, 2), (1, 0), (2, 1), (0, 2), (1, 0), (2, 1)),
        strict=True,
    ):
        v = [a, b, c]
        v[i] = ((v[i] ^ v[j]) - turn(v[j], n)) & mask
        a, b, c = v
    return c


def put(f, path, values, **how):
    if path in f:
        del f[path]
    f.create_dataset(path, data=values, **how)


def read_manifest(f):
    return json.loads(f["manifest"][()].tobytes())


def put_manifest(f, manifest):
    text = manifest if isinstance(manifest, str) else canonical(manifest)
    del f["manifest"]
    f["manifest"] = np.frombuffer(text.encode(), np.uint8)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def sha(*chunks):
    return hashlib.sha256(b"".join(chunks)).hexdigest()


def array_sha(a):
    little = a.astype(a.dtype.newbyteorder("<"))
    return sha(
        canonical([little.dtype.str.replace("|", "<"), list(little.shape)]).encode(),
        little.tobytes(),
    )


def digested(f):
    """The manifest with digests made anew, by nothing but hashlib and json: docs/format.md in few words."""
    manifest = read_manifest(f)
    n_parties = manifest["recipe"]["n_parties"]
    parts, digests = {}, {}
    for name in ("train", "val", "test"):
        there = name in f
        indptr = f[name]["indptr"][()] if there else empty_indptr(n_parties)
        indices = f[name]["indices"][()] if there else np.zeros(0)
        parts[name] = digests[name] = sha(
            indptr.astype("<i8").tobytes(), indices.astype("<i8").tobytes()
        )
        if there:
            digests[f"{name}/counts"] = array_sha(f[name]["counts"][()])
    for group in ("draws", "parties"):
        digests |= {
            f"{group}/{name}": array_sha(values[()]) for name, values in f.get(group, {}).items()
        }
    columns = {name: array_sha(values[()]) for name, values in f.get("parties", {}).items()}
    whole = {
        "recipe": manifest["recipe"],
        "source": manifest["source"],
        "parts": parts,
        "columns": columns,
        "format": manifest["format"]["major"],
    }
    skew = (
        {"skew": {name: array_sha(values[()]) for name, values in f["skew"].items()}}
        if "skew" in f
        else {}
    )
    return manifest | {"digests": digests | {"split": sha(canonical(whole).encode())}} | skew


def empty_indptr(n_parties):
    """That of a part that is not there. A lie about the parties may not take all memory."""
    if n_parties > MOST_PARTIES:
        raise ValueError(f"{n_parties} parties; at most {MOST_PARTIES} are made up")
    return np.zeros(n_parties + 1)


def told(split):
    """Everything that can be read from a split, as a text."""
    parts = {
        name: [array_sha(a) for a in (p.indptr, p.indices, p.counts)]
        for name, p in split.parts.items()
    }
    arrays = {
        f"{kind} {name}": array_sha(a)
        for kind in ("draws", "columns")
        for name, a in getattr(split, kind).items()
    }
    return json.dumps(
        [split.digest, split.recipe.to_json(), split.source.to_json(), split.root, parts, arrays],
        sort_keys=True,
    )
