"""Splits on the Hugging Face Hub: `push` publishes one, `pull` and `fetch` get one. Needs huggingface_hub; `push` pyarrow as well.

A repository holds one split at a time: `split.h5`, the tables of `formats/hf.py`, a card. Each split that was ever there keeps its tag.
Of a repository somebody else made, only `split.h5` is fetched, and it is read as a file of nobody's: no code, no card, no other file of it counts.
"""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ..checking.verification import open_data
from ..data import Data
from ..errors import FileFault, UsageError
from ..formats._card import is_card, tag_name
from ..formats.hf import CARD, SPLIT, hf, shards
from ..splitfile.check import read
from ..splitfile.faults import SplitError
from ..splitfile.h5 import to_bytes, write
from ..splits.split import FederatedSplit
from .answers import Place, place, told
from .reads import Stored, download, is_commit, listing, printed, revision

__all__ = ["Pulled", "Pushed", "fetch", "opened", "pull", "push"]

MAX_BYTES = 1 << 30  # of a split file that is fetched, unless its reader says otherwise
SECONDS = 600.0  # for fetching it, unless its reader says otherwise
_CARD_BYTES = 16 << 20
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_]|[.-](?![.-]))*"  # neither -- nor .. in it
_REPO = re.compile(rf"({_PART})/({_PART})")
_REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}")
_TAG = re.compile(r"split-([0-9a-f]{16})(?:-data)?")
_TABLE = re.compile(
    r"[A-Za-z0-9._-]+/(?:train|val|test|global_test)-([0-9a-f]{16})-\d{5}-of-\d{5}\.parquet"
)
_NOTHING = "nothing was published; push again"


@dataclass(frozen=True)
class Pushed:
    """commit: the revision that holds the split, "" after a dry run. files: bytes by path, of what was (or would be) written; {} where nothing
    was to be done. removed: tables of the split that stood there before. replaced: files of `files` that stood there with another content.
    changed: whether a commit was made (or would be)."""

    url: str
    commit: str
    tag: str
    files: Mapping[str, int]
    changed: bool
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pulled:
    """path: the split file here. commit: the 40 hex digits of the revision it is from. digest: of the split."""

    path: Path
    url: str
    commit: str
    digest: str
    split: FederatedSplit = field(repr=False, compare=False)


def push(
    split_file: str | Path,
    repo: str,
    *,
    private: bool = False,
    dry_run: bool = False,
    include_data: bool = False,
    data: Data | None = None,
    data_root: str | Path | None = None,
    replace_card: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> Pushed:
    """Publishes a split file as the data set `repo` (USER/NAME): one commit and a tag, or nothing.

    The repository is made if it is missing, with `private` for nobody else to see. What is published is told by `niidpart.formats.hf`; the split
    file goes without the hint of where the data was. include_data: the examples too, from `data`, `data_root` or where the file says. The same
    split again changes nothing where its files are there and whole; another one takes the place of the one there, which its tag still leads to,
    and so does the same one without the examples. replace_card: also where a README.md stands that niidpart did not write. dry_run: looks, writes
    nothing. token: None for what `hf auth login` stored or HF_TOKEN says. endpoint: None for the Hub, or what HF_ENDPOINT says.

    ValueError for a name or address that cannot be, or data that is missing; FileFault where there is no token, where the token may not write,
    where somebody published since it was looked, where the tag leads to something else, where the Hub left a file out, where the connection
    was lost.
    """
    _named(repo)
    split = read(split_file)
    if include_data and data is None:
        data = open_data(split, data_root)
    data = data if include_data else None
    tag = tag_name(split, include_data)
    wanted = {SPLIT, *(shard.path for shard in shards(split, data))}
    at = place(repo, token, endpoint)
    if not dry_run and not at.secret:
        raise FileFault(
            "there is no token to publish with; log in with `hf auth login`, set HF_TOKEN, or pass token="
        )
    head = _looked_at(at, private, dry_run)
    tagged = (
        _by_tag(
            at, split, tag, f"nothing was published. Delete that tag on {at.url}, then push again"
        )
        if head.commit
        else None
    )
    card = _card(at, head)
    removed = tuple(sorted(_ours(at, head, card) - wanted))
    kept = CARD in head.files and not removed
    if (
        tagged is not None
        and kept
        and all(path in tagged and head.files.get(path) == tagged[path] for path in wanted)
    ):
        return Pushed(at.url, head.commit, tag, {}, changed=False)
    with tempfile.TemporaryDirectory(prefix="niidpart-push-") as scratch:
        files = _written(hf(split, data, repo=repo), Path(scratch))
        sizes = {path: next(iter(stored)).size for path, stored in files.items()}
        same = {path for path, stored in files.items() if head.files.get(path) in stored}
        if kept and wanted <= same:  # an earlier push got as far as the commit
            if not dry_run and tagged is None:
                _tagged(at, split, tag, head.commit)
            return Pushed(at.url, head.commit, tag, {}, changed=False)
        if CARD in head.files and not is_card(card) and not replace_card:
            raise FileFault(
                f"{at} has a {CARD} that niidpart did not write; nothing was published. Take another name, or have it replaced (--replace-card)"
            )
        replaced = tuple(sorted(files.keys() & head.files.keys() - same))
        if dry_run:
            return Pushed(at.url, "", tag, sizes, True, removed, replaced)
        commit = _committed(at, split, Path(scratch), files, removed, head.commit)
    _whole(at, commit, files)
    if tagged is None:
        _tagged(at, split, tag, commit)
    return Pushed(at.url, commit, tag, sizes, True, removed, replaced)


def pull(
    repo: str,
    rev: str | None = None,
    out: str | Path = "split.h5",
    *,
    digest: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    max_bytes: int = MAX_BYTES,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> Pulled:
    """`fetch`, then the split written to `out`, whole or not at all. Not the bytes that came, but the split read from them: what a stranger's
    file hides beside the split stays behind."""
    got = fetch(
        repo,
        rev,
        digest=digest,
        token=token,
        endpoint=endpoint,
        max_bytes=max_bytes,
        max_memory=max_memory,
        timeout=timeout,
    )
    return Pulled(write(got.split, out), got.url, got.commit, got.split.digest, got.split)


class Fetched(NamedTuple):
    """commit: the 40 hex digits of the revision that the split is from."""

    split: FederatedSplit
    url: str
    commit: str


def fetch(
    repo: str,
    rev: str | None = None,
    *,
    digest: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    max_bytes: int = MAX_BYTES,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> Fetched:
    """The split of the data set `repo` (USER/NAME, also with @REV) on the Hub, checked.

    rev: a commit, tag or branch, None for the main branch; it is resolved to a commit first, and only that commit's split.h5 is fetched, of at
    most `max_bytes`. It is read as `niidpart.read(untrusted=True)` reads, with its `max_memory`, so the digest in it is that of its content.
    timeout: seconds for the file to come and be read, None for 600 and what `read` allows. digest: the beginning of the digest that it has to
    have; a tag that `push` made says 16 digits of it by itself.
    ValueError for a name that cannot be; FileFault for what is not there, too large, no valid split, or another split.
    """
    repo, rev = _address(repo, rev)
    digest = None if digest is None else digest.lower()
    if digest is not None and not re.fullmatch(r"[0-9a-f]{8,64}", digest):
        raise UsageError(
            f"digest is {digest!r}; at least the first 8 of its 64 hexadecimal digits are needed"
        )
    at, how_on = place(repo, token, endpoint), "nothing was fetched; try again"
    start = time.monotonic()
    with told(at, how_on, rev=rev):
        commit = str(revision(at, rev)["sha"])
    if not is_commit(commit) or (rev and is_commit(rev) and commit != rev):
        raise FileFault(
            f"{at.api.endpoint} says that {rev or 'main'} of {repo} is the commit {commit[:80]!a}; that is not it"
        )
    with tempfile.TemporaryDirectory(prefix="niidpart-pull-") as scratch:
        file = Path(scratch) / SPLIT
        with told(at, how_on, rev=rev, file=SPLIT):
            download(at, commit, SPLIT, file, max_bytes, SECONDS if timeout is None else timeout)
        left = None if timeout is None else max(0.001, timeout - (time.monotonic() - start))
        try:
            split = read(file, untrusted=True, max_memory=max_memory, timeout=left)
        except SplitError as error:
            raise SplitError(f"{SPLIT} of {repo} at {commit}", error.faults) from error
    by_tag = _TAG.fullmatch(rev or "")
    for promised, by in ((digest, "asked for"), (by_tag and by_tag[1], f"named by the tag {rev}")):
        if promised and not split.digest.startswith(promised):
            raise FileFault(
                f"{repo} at {commit} holds the split {split.digest[:16]}..., not {promised[:16]}..., which was {by}; do not use it"
            )
    return Fetched(split, at.url, commit)


def opened(split: str | Path, found: Callable[[Fetched], None] = lambda _: None) -> FederatedSplit:
    """The split of a path, or of `hub:USER/NAME[@REV]`, of which `found` then hears where it is from."""
    where = str(split)
    if not where.startswith("hub:"):
        return read(split)
    got = fetch(where.removeprefix("hub:"))
    found(got)
    return got.split


def _named(repo: str) -> None:
    found = _REPO.fullmatch(repo)
    if (
        found is None
        or len(repo) > 96
        or repo[-1] in ".-"
        or found[1][-1] in ".-"
        or repo.endswith(".git")
    ):
        raise UsageError(
            f"repo is {repo!r}; USER/NAME is needed: letters, digits, _, and single - and . inside, at most 96 characters, not ending in .git"
        )


def _address(repo: str, rev: str | None) -> tuple[str, str | None]:
    """(USER/NAME, revision or None), also of USER/NAME@REV."""
    repo, at, behind = repo.partition("@")
    if at and rev is not None:
        raise UsageError(f"the revision is said twice: @{behind} and {rev}; say it once")
    rev = behind if at else rev
    _named(repo)
    if rev is not None and not _REVISION.fullmatch(rev):
        raise UsageError(
            f"revision is {rev!r}; a commit (40 hexadecimal digits), a tag or a branch is needed"
        )
    return repo, rev


class _Head(NamedTuple):
    commit: str  # "" where there is no repository
    files: Mapping[str, Stored]


def _looked_at(at: Place, private: bool, dry_run: bool) -> _Head:
    """The main branch as it is now; the repository is made if there is none."""
    from huggingface_hub.errors import RepositoryNotFoundError

    with told(at, _NOTHING):
        try:
            found = revision(at, None)
        except RepositoryNotFoundError:
            if dry_run:
                return _Head("", {})
            at.api.create_repo(at.repo, repo_type="dataset", private=private, exist_ok=True)
            found = revision(at, None)
        if not is_commit(commit := str(found["sha"])):
            raise TypeError(f"{commit[:80]} is no commit")
        files = listing(at, commit)
    if private and found.get("private") is not True:
        raise UsageError(
            f"{at.repo} is there already and everybody can see it; leave out --private, or change that on {at.url}/settings"
        )
    return _Head(commit, files)


def _by_tag(at: Place, split: FederatedSplit, tag: str, how_on: str) -> Mapping[str, Stored] | None:
    """The files of the commit that the tag leads to, None where there is no such tag; FileFault where that commit does not hold the split."""
    from huggingface_hub.errors import RevisionNotFoundError

    with told(at, how_on, stands=True):
        try:
            commit = str(revision(at, tag)["sha"])
        except RevisionNotFoundError:
            return None
        files = listing(at, commit)
    there = files.get(SPLIT)
    if there in printed(to_bytes(replace(split, root=""))):
        return files
    try:  # another version of niidpart may have written it otherwise
        if (
            there is not None
            and fetch(at.repo, commit, token=at.token, endpoint=at.api.endpoint).split.digest
            == split.digest
        ):
            return files
    except SplitError:
        pass
    raise FileFault(
        f"the tag {tag} of {at} leads to the commit {commit}, which does not hold this split; {how_on}"
    )


def _card(at: Place, head: _Head) -> str:
    """README.md as it is there, "" where there is none or one that is no text."""
    if CARD not in head.files or head.files[CARD].size > _CARD_BYTES:
        return ""
    with (
        tempfile.TemporaryDirectory(prefix="niidpart-push-") as scratch,
        told(at, _NOTHING, file=CARD),
    ):
        download(at, head.commit, CARD, Path(scratch) / CARD, _CARD_BYTES, SECONDS)
        return (Path(scratch) / CARD).read_text("utf-8", errors="replace")


def _ours(at: Place, head: _Head, card: str) -> set[str]:
    """The tables there that niidpart wrote: our card lists them, or their name has the digest of a tag of ours. What is only named alike is not."""
    tables = {path: found[1] for path in head.files if (found := _TABLE.fullmatch(path))}
    ours = {path for path in tables if is_card(card) and json.dumps(path) in card}
    if ours != tables.keys():
        with told(at, _NOTHING):
            tags = [
                _TAG.fullmatch(tag.name)
                for tag in at.api.list_repo_refs(at.repo, repo_type="dataset").tags
            ]
        digests = {tag[1] for tag in tags if tag}
        ours |= {path for path, digest in tables.items() if digest in digests}
    return ours


def _written(contents: Iterator[tuple[str, bytes]], folder: Path) -> dict[str, frozenset[Stored]]:
    """{path: how it may be stored} of what lies in the folder then; one file at a time is in memory."""
    found = {}
    for path, content in contents:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        found[path] = printed(content)
    return found


def _committed(
    at: Place,
    split: FederatedSplit,
    folder: Path,
    files: Mapping[str, object],
    removed: tuple[str, ...],
    parent: str,
) -> str:
    """The commit with all of it, on top of the one that was looked at and no other."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations = [CommitOperationAdd(path, folder / path) for path in files] + [
        CommitOperationDelete(path) for path in removed
    ]
    about = {
        "repo_type": "dataset",
        "revision": "main",
        "commit_message": f"Split {split.digest[:16]} (niidpart)",
    }
    with told(
        at,
        "either all of it was published or nothing; push again, and what is there is looked at first",
    ):
        commit = str(at.api.create_commit(at.repo, operations, parent_commit=parent, **about).oid)
        if not is_commit(commit):
            raise TypeError(f"{commit[:80]} is no commit")
    return commit


def _whole(at: Place, commit: str, files: Mapping[str, frozenset[Stored]]) -> None:
    """Whether the commit holds what was to be published: the Hub leaves out what the repository's .gitignore names, and does not say so."""
    with told(
        at, f"the commit {commit} is made, but not yet compared or tagged; push again", stands=True
    ):
        there = listing(at, commit)
    if lost := [path for path, stored in files.items() if there.get(path) not in stored]:
        raise FileFault(
            f"the commit {commit} of {at} is made, but lacks {', '.join(lost)}, so it has no tag; take what names them out of the .gitignore "
            "of that repository, then push again"
        )


def _tagged(at: Place, split: FederatedSplit, tag: str, commit: str) -> None:
    from huggingface_hub.errors import HfHubHTTPError

    published = f"the split is published as the commit {commit}"
    with told(
        at, f"{published}, but its tag {tag} may be missing; push again to set it", stands=True
    ):
        try:
            at.api.create_tag(at.repo, tag=tag, revision=commit, repo_type="dataset")
            return
        except HfHubHTTPError as error:
            if error.response.status_code != 409:
                raise
    _by_tag(
        at, split, tag, f"{published}. Delete that tag on {at.url}, then push again"
    )  # somebody set it meanwhile
