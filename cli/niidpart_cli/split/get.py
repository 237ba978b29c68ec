"""`niidpart data get`."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from ..command import AdvisingCommand
from ..tables import format_table
from ..terminal import say
from .params import declare_json
from .progress import DownloadLine, show_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from niidpart.data import Download
    from niidpart.data.getting import Found, Meter

_HELP = """Fetch a data set by its name into the folder where `make` reads it.

Without NAME: what can be had, from whom, its size and licence. Each file must have the digest that
is published of it; one that is there with it is not fetched again, and nothing with another one is
ever put in place. No other command fetches data. This one needs pooch.

\b
Examples:
  niidpart data get
  niidpart data get mnist --root data
  niidpart data get cifar10 --root data --dry-run      what to copy by hand, and where to
  niidpart make --dataset mnist --data-root data --strategy dir

Where there is no network it says the URL, the place and the digest of each file that is missing:
copy them there, and say the same again. Exit code 1: no network, or a file with another digest; 2:
there is no such data set."""


def declare_get() -> click.Command:
    return AdvisingCommand(
        "get",
        params=[
            click.Argument(["name"], required=False),
            click.Option(
                ["--root"],
                type=click.Path(file_okay=False, path_type=Path),
                help="The folder that it goes to, which is --data-root for the other commands.",
            ),
            click.Option(["--dry-run"], is_flag=True, help="Fetch nothing, say what is missing."),
            click.Option(["--force"], is_flag=True, help="Replace files with another digest."),
            declare_json(),
        ],
        callback=_get,
        help=_HELP,
    )


def _get(name: str | None, root: Path | None, dry_run: bool, force: bool, as_json: bool) -> None:
    from niidpart.data.getting import fetch_data_set, look_for

    if name is None:
        _list_all(as_json)
        return
    if root is None:
        raise click.UsageError(f"say where {name} goes: --root DIR")
    with show_work():
        if dry_run:
            files = look_for(name, root, overwrite=force)
        else:
            files = fetch_data_set(name, root, overwrite=force, watch=_watch)
    if as_json:
        say(json.dumps({"dataset": name, "root": str(root), "files": list(map(_to_json, files))}))
        return
    _describe(name, root, files)


def _list_all(as_json: bool) -> None:
    from niidpart.data.credits import find_credit
    from niidpart.data.getting import find_downloads, format_size, list_fetchable

    found = {name: find_downloads(name) for name in list_fetchable()}
    if as_json:
        say(json.dumps({"datasets": {name: _total(files) for name, files in found.items()}}))
        return
    rows = []
    for name, downloads in found.items():
        credit = find_credit(name)
        licence = (credit.terms or credit.licence) if credit else "unknown"
        hosts = dict.fromkeys(urlsplit(url).hostname or "" for d in downloads for url in d.urls)
        size = format_size(_total(downloads))
        rows.append([name, size, len(downloads), ", ".join(hosts), licence])
    say(format_table(["data set", "size", "files", "from", "licence"], rows))
    say("\nniidpart data get NAME --root DIR fetches one, checked by its published digest")


def _total(downloads: "Sequence[Download]") -> int:
    return sum(download.n_bytes for download in downloads)


def _to_json(found: "Found") -> dict[str, object]:
    wanted = found.download
    about = {"urls": wanted.urls, "digest": wanted.digest, "bytes": wanted.n_bytes}
    return {"path": str(found.path), "state": found.state} | about


def _describe(name: str, root: Path, files: "Sequence[Found]") -> None:
    from niidpart.data.getting import describe_copying

    words = {
        "there": "there already",
        "unpacked": "unpacked already, not checked (remove it to have it anew)",
    }
    for found in files:
        say(f"{found.path}: {words.get(found.state, found.state)}")
    missing = [found for found in files if found.state == "missing"]
    if missing:
        say(f"\n{describe_copying(missing)}")
        return
    place = shlex.quote(str(root))
    say(f"\nto make a split:\n  niidpart make --dataset {name} --data-root {place} --strategy dir")


def _watch(download: "Download") -> "Meter | None":
    """Return a line that says how far a download is, on a terminal."""
    if not sys.stderr.isatty():
        return None
    return DownloadLine(download.place)
