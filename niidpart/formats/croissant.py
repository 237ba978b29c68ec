"""Croissant: the CSV form with a description that machines read."""

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

from ..data import Data
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit
from . import LOSABLE
from ._shared import ABOUT, about
from .csv import PARTIES, ROWS, parties_table, rows_table

__all__ = ["croissant"]

HOLDS = frozenset(LOSABLE) - {"recipe"}
ONLY_OUT = "it is the csv form with a description; import that with --from csv"
_CC0 = "https://creativecommons.org/publicdomain/zero/1.0/"
_TYPES = {"i": "sc:Integer", "u": "sc:Integer", "f": "sc:Float", "S": "sc:Text"}


def croissant(
    split: FederatedSplit,
    data: Data | None,
    *,
    name: Annotated[str, "Name of the data set; else split- and the beginning of the digest."] = "",
    license: Annotated[
        str, "Licence of the split, which is a list of row numbers and none of the data."
    ] = _CC0,
) -> Iterator[tuple[str, bytes]]:
    """The files of csv, described by croissant.json (Croissant 1.0), with checksums; record sets `rows` and `parties`.

    name: of the data set ("split-" and the beginning of the digest). license: of the split, which is a list of row numbers and none of the data.
    """
    files = {ROWS: rows_table(split), PARTIES: parties_table(split), ABOUT: about(split)}
    said = _described(split, files, name or f"split-{split.digest[:12]}", license)
    yield from files.items()
    yield "croissant.json", json.dumps(said, indent=1).encode() + b"\n"


def _described(split: FederatedSplit, files: dict[str, bytes], name: str, license: str) -> JSON:
    columns = {key: _TYPES[column.dtype.kind] for key, column in sorted(split.columns.items())}
    sizes = dict.fromkeys(split.parts, "sc:Integer")
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": _in_words(split),
        "license": license,
        "version": "1.0.0",
        "url": f"urn:sha256:{split.digest}",
        "citeAs": f"niidpart split {split.digest}",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": file,
                "encodingFormat": "text/csv" if file.endswith(".csv") else "application/json",
                "contentSize": f"{len(content)} B",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            for file, content in files.items()
        ],
        "recordSet": [
            _records("rows", ROWS, {"part": "sc:Text", "party": "sc:Integer", "row": "sc:Integer"}),
            _records("parties", PARTIES, {"party": "sc:Integer"} | sizes | columns),
        ],
    }


def _in_words(split: FederatedSplit) -> str:
    of = f"which of {split.n_parties} parties holds which example of the data set {split.source.name}"
    return f"A federated split: {of}. Made by niidpart with the strategy {split.recipe.strategy} and seed {split.recipe.seed}; digest {split.digest}."


def _records(name: str, file: str, columns: dict[str, str]) -> JSON:
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{column}",
            "name": column,
            "dataType": kind,
            "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
        }
        for column, kind in columns.items()
    ]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


_CONTEXT: dict[str, Any] = {  # the one that Croissant 1.0 prescribes
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
