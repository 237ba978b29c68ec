"""What goes wrong between here and the Hub, said so that one knows how to go on. The token stands in no message."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import FileFault, UsageError

__all__ = ["Place", "no_answer", "place", "told"]

_MALFORMED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    RecursionError,
)  # what the Hub's library falls over then

_STRANGE = (
    "InvalidURL",
    "UnsupportedProtocol",
    "TooManyRedirects",
    "DecodingError",
)  # of httpx or httpx2: an answer came, and leads nowhere


class Place(NamedTuple):
    """The data set `repo` on a Hub. api: huggingface_hub.HfApi with `token`, None for the stored one. secret: what is sent as token, "" for none."""

    api: Any
    repo: str
    token: str | None
    secret: str

    @property
    def url(self) -> str:
        return f"{self.api.endpoint}/datasets/{self.repo}"

    def __str__(self) -> str:
        return f"{self.repo} on {self.api.endpoint}"


def place(repo: str, token: str | None, endpoint: str | None) -> Place:
    """ValueError for an address that is none; FileFault for a token that is none, without showing it."""
    import huggingface_hub
    from huggingface_hub.constants import ENDPOINT

    address = endpoint or ENDPOINT
    if not _is_url(address):
        said = "endpoint" if endpoint else "HF_ENDPOINT"
        raise UsageError(
            f"{said} is {address!r}; an address such as https://huggingface.co is needed"
        )
    stored = token is None
    secret = ((huggingface_hub.get_token() or "") if token is None else token).strip()
    if not secret and not stored:
        raise FileFault(
            "the token that was handed over is empty; hand over None for the stored one, or copy it anew from the Hub's settings"
        )
    if not re.fullmatch(r"[!-~]*", secret):
        whose = (
            "the token (of HF_TOKEN or `hf auth login`)"
            if stored
            else "the token that was handed over"
        )
        raise FileFault(
            f"{whose} holds a space, a line's end or a letter outside ASCII, which no token does; copy it anew from the Hub's settings"
        )
    token = None if stored else secret
    return Place(huggingface_hub.HfApi(endpoint=address, token=token), repo, token, secret)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and text.isprintable()
            and " " not in text
            and (parts.port or 1) > 0
        )
    except ValueError:
        return False


def no_answer(at: Place, found: str) -> FileFault:
    return FileFault(f"{at.api.endpoint} answered something that is no answer of the Hub ({found})")


@contextmanager
def told(
    at: Place, how_on: str, *, rev: str | None = None, file: str = "", stands: bool = False
) -> Iterator[None]:
    """What the Hub's library raises in the block, as FileFaults that end in `how_on` where that helps.

    file: what was asked for, for an error that it is not there. stands: something was published before, so every message ends in `how_on`.
    """
    try:
        yield
    except FileFault:
        raise
    except Exception as error:
        said = _explained(error, at, how_on, rev, file)
        if said is None:  # not of the Hub: a full disk, a fault in here
            raise
        if stands and how_on not in said:
            said += f"; {how_on}"
        shown = _without(at.secret, said)
        raise FileFault(shown) from (None if at.secret and at.secret in str(error) else error)


def _explained(error: Exception, at: Place, how_on: str, rev: str | None, file: str) -> str | None:
    """None where the error is not of the Hub."""
    from huggingface_hub import errors

    of_http: type[Exception] = errors.HfHubHTTPError.__mro__[1]  # of httpx or httpx2, by generation
    endpoint = at.api.endpoint
    match error:
        case errors.RepositoryNotFoundError():
            return f"there is no data set {at}, or this token may not see it; look at the name, or log in with `hf auth login`"
        case errors.RevisionNotFoundError():
            return f"{at} has no commit, tag or branch {rev or 'main'}; its page lists them"
        case errors.LocalEntryNotFoundError():
            return f"{endpoint} cannot be reached ({_short(error)}); {how_on}"
        case errors.EntryNotFoundError():
            return f"{at} has no {file or 'such file'}; it was not published by `niidpart push`"
        case errors.OfflineModeIsEnabled():
            return "HF_HUB_OFFLINE is set, so the Hub is not asked; unset it"
        case errors.HfHubHTTPError():
            return _refused(error, at, how_on)
        case _ if type(error).__name__ in _STRANGE or isinstance(error, _MALFORMED):
            return f"{no_answer(at, _short(error))}; {how_on}"
        case _ if isinstance(error, of_http | ConnectionError | TimeoutError):
            return f"the connection to {endpoint} was lost ({_short(error)}); {how_on}"
        case RuntimeError():  # what goes wrong in an upload comes wrapped in one
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else None
            if isinstance(cause, (errors.HfHubHTTPError, *_MALFORMED)):
                return _explained(cause, at, how_on, rev, file)
            return f"the upload to {endpoint} failed ({_short(cause or error)}); {how_on}"
    return None


def _refused(error: Any, at: Place, how_on: str) -> str:
    status = getattr(error.response, "status_code", 0)
    if status == 401:
        return (
            f"{at} does not take this token; log in anew with `hf auth login`, or look at HF_TOKEN"
        )
    if status == 403:
        return (
            f"this token may not write to {at}; take a name of your own, or a token that may write"
        )
    if status == 412:
        return f"somebody else published to {at} while this was under way; nothing was changed. Look at what is there now, then push again"
    return f"{at} answered {status} ({_short(error)}); {how_on}"


def _short(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    said = lines[0][:200] if lines else os.strerror(getattr(error, "errno", None) or 0)
    return f"{type(error).__name__}: " + "".join(c if c.isprintable() else "?" for c in said)


def _without(secret: str, text: str) -> str:
    return text.replace(secret, "(the token)") if secret else text
