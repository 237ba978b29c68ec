"""Records of published splits, out of their files: one TOML file each into niidpart/published/records.

    python benchmarks/published_records.py NAME FILE --paper KEY --dataset cifar10 --n 50000 \
        --rule "..." --repository OWNER/NAME --commit ... --path ... [--labels labels.npz]

--table alone prints the table of docs/registry.md.

FILE is the published file as it stands. What stands in the record is measured here: digests of rows,
skew and findings by `niidpart audit`. --labels: an .npz with `y`, the classes in official order.
"""

import argparse
import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import niidpart
from niidpart.auditing.auditing import audit
from niidpart.auditing.subject import read_published
from niidpart.interop.recognition import recognise
from niidpart.published.records import load_records
from niidpart.published.rows import digest_parts

RECORDS = Path(niidpart.__file__).parent / "published" / "records"


def main() -> None:
    if sys.argv[1:] == ["--table"]:
        print(write_table())
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("file", type=Path)
    for option in ("paper", "dataset", "rule", "repository", "commit", "path"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--command", default="")
    parser.add_argument("--labels", type=Path)
    asked = parser.parse_args()
    data = None if asked.labels is None else niidpart.load("npz", asked.labels)
    target = RECORDS / f"{asked.name.replace('/', '-')}.toml"
    target.write_text(write_record(describe(asked, data)), encoding="utf-8")
    print(target)


def describe(asked: argparse.Namespace, data: niidpart.Data | None) -> dict[str, Any]:
    """Return what the record says."""
    is_pickle = recognise(asked.file).format in ("pickle", "fedlab")
    options = {"trust_pickle": True} if is_pickle else {}
    subject = read_published(asked.file, None, None, options)
    found = audit(asked.file, data=data, **options)
    plain = {key: getattr(asked, key) for key in ("name", "paper", "dataset", "n")}
    plain |= {"n_parties": subject.n_parties, "rule": asked.rule, "command": asked.command}
    # Without the data set `audit` does not know how many rows nobody holds.
    held = np.unique(np.concatenate([row for _, row in subject.parts.values()]))
    faults = [f"{one.kind} {one.n}" for one in found.findings if one.kind != "unheld"]
    if len(held) < asked.n:
        faults.append(f"unheld {asked.n - len(held)}")
    plain |= {"faults": sorted(faults), "digests": digest_parts(subject.parts, subject.n_parties)}
    if found.counts is not None and found.skew is not None:
        plain["skew"] = measure(found)
    place = {key: getattr(asked, key) for key in ("repository", "commit", "path")}
    return plain | {"places": [place | {"sha256": digest_file(asked.file)}]}


def measure(found: Any) -> dict[str, float]:
    """Return skew in few numbers."""
    scaled = {
        one.name.replace("-", "_"): round(one.value, 4)
        for one in found.skew.measures
        if one.form == "to-global" and one.name in ("total-variation", "hellinger")
    }
    classes = np.count_nonzero(found.counts, axis=1).mean()
    best = found.explanations[0]
    beta = {"beta": float(f"{best.value:.3g}")} if best.option == "beta" else {}
    return {"classes_a_party": round(float(classes), 2)} | scaled | beta


def digest_file(path: Path) -> str:
    raw = path.read_bytes()
    return hashlib.sha256(gzip.decompress(raw) if path.suffix == ".gz" else raw).hexdigest()


def write_record(record: dict[str, Any]) -> str:
    """Return a record as TOML, whose strings and lists are those of JSON."""
    lines = [
        f"{key} = {json.dumps(value)}"
        for key, value in record.items()
        if key not in ("digests", "skew", "places")
    ]
    for key in ("digests", "skew"):
        if key in record:
            lines += ["", f"[{key}]"]
            lines += [f"{name} = {json.dumps(value)}" for name, value in record[key].items()]
    for place in record["places"]:
        lines += ["", "[[places]]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in place.items()]
    return "\n".join(lines) + "\n"


def write_table() -> str:
    """Return the table of all records, as docs/registry.md has it."""
    lines = ["| name | rule | TV | classes | found |", "| --- | --- | --- | --- | --- |"]
    for record in load_records().values():
        distance = record.skew.get("total_variation", "-")
        classes = record.skew.get("classes_a_party", "-")
        found = ", ".join(record.faults) or "nothing"
        lines.append(f"| `{record.name}` | {record.rule} | {distance} | {classes} | {found} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
