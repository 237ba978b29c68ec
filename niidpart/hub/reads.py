"""What is asked of the Hub without changing it: a revision, the files of a commit, one file. Answers are looked at before they are believed."""

import hashlib
import re
import time
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from ..errors import FileFault
from .answers import Place, no_answer

__all__ = ["Stored", "download", "is_commit", "listing", "printed", "revision"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_WAIT = 60.0  # seconds without a byte


class Stored(NamedTuple):
    """A file of a commit. print: sha256 of a large file, git's sha1 of another."""

    size: int
    print: str


def is_commit(text: str) -> bool:
    return _COMMIT.fullmatch(text) is not None


def printed(content: bytes) -> frozenset[Stored]:
    """How a file of this content may be stored: as a large one or not is the Hub's to say."""
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return frozenset(
        Stored(len(content), name) for name in (git, hashlib.sha256(content).hexdigest())
    )


def revision(at: Place, rev: str | None) -> dict[str, Any]:
    """`sha` and `private` of a commit, tag or branch, None for the main branch.

    Not by the library's `repo_info`: that reads the card along, and falls over keys that a stranger wrote there.
    """
    import huggingface_hub.utils

    utils = cast(Any, huggingface_hub.utils)
    url = f"{at.api.endpoint}/api/datasets/{at.repo}" + (
        f"/revision/{quote(rev, safe='')}" if rev else ""
    )
    headers = utils.build_hf_headers(token=at.token)
    answer = utils.get_session().get(
        url,
        headers=headers,
        params={"expand": ["sha", "private"]},
        follow_redirects=True,
        timeout=_WAIT,
    )
    utils.hf_raise_for_status(answer)
    found = answer.json()
    if not isinstance(found, dict) or "sha" not in found:
        raise TypeError(f"{str(found)[:80]} says no commit")
    return found


def listing(at: Place, commit: str) -> dict[str, Stored]:
    """{path: Stored} of a commit."""
    found = {}
    for entry in at.api.list_repo_tree(
        at.repo, recursive=True, revision=commit, repo_type="dataset"
    ):
        if (size := getattr(entry, "size", None)) is not None:  # a folder has none
            found[entry.path] = Stored(size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
    return found


def download(at: Place, commit: str, path: str, file: Path, max_bytes: int, seconds: float) -> None:
    """A file of a commit into `file`. Not through the cache of the Hub's library, which has no limit of size. seconds: for all of it."""
    import huggingface_hub.utils

    hub, utils = huggingface_hub, cast(Any, huggingface_hub.utils)
    end = time.monotonic() + seconds
    url = hub.hf_hub_url(
        at.repo, path, repo_type="dataset", revision=commit, endpoint=at.api.endpoint
    )
    said = hub.get_hf_file_metadata(url, token=at.token).size
    large = f"allow more (--max-size, max_bytes=) if you know it; {max_bytes} bytes are allowed"
    if said is not None and said < 0:
        raise no_answer(at, f"{path} has {said} bytes")
    if said is not None and said > max_bytes:
        raise FileFault(f"{path} of {at.repo} has {said} bytes; {large}")
    headers = utils.build_hf_headers(token=at.token) | {"Accept-Encoding": "identity"}
    wait = max(0.001, min(_WAIT, end - time.monotonic()))
    with (
        utils.get_session().stream(
            "GET", url, headers=headers, follow_redirects=True, timeout=wait
        ) as response,
        open(file, "wb") as f,
    ):
        utils.hf_raise_for_status(response)
        got = 0
        for (
            block
        ) in response.iter_bytes():  # as they come: a block of a given size would wait for a drip
            got += len(block)
            if got > max_bytes:
                raise FileFault(f"{path} of {at.repo} has more bytes than was said; {large}")
            f.write(block)
            if time.monotonic() > end:
                raise FileFault(
                    f"{path} of {at.repo} was not there after {seconds:g} s ({got} bytes came); allow more (--timeout), or try again"
                )
    if said is not None and got != said:
        raise FileFault(
            f"{path} of {at.repo} came with {got} bytes, {said} were said; the connection was cut, pull again"
        )
