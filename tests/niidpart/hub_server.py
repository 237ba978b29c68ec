"""A Hub on loopback: enough of the protocol of huggingface.co that its released clients publish and fetch data sets here, with LFS and redirects.

`with LocalHub() as hub: hub.url`. State is plain: `hub.repos[name]`. `hub.spoil`, where it is set, sees each request first: `spoil(request) -> bool`
answers (or breaks) it and says True, or leaves it alone. `hub.seen` lists the requests.
"""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

TOKENS = {"hf_ann": "ann", "hf_bob": "bob"}
LFS = (".h5", ".parquet", ".png")
TIME = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class File:
    """oid: sha256 of an LFS file, git's sha1 of another."""

    content: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def oid(self) -> str:
        return self.sha256 if self.lfs else git_oid(self.content)


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repo:
    """commits: {sha: {path: File}}; refs: branches and tags, {name: sha}. card: the keys of the card, as the Hub sends them along unless it is asked
    for other things alone."""

    private: bool
    commits: dict[str, dict[str, File]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)  # (sha, message)
    card: dict = field(default_factory=dict)

    def commit(self, files: dict[str, File], message: str = "") -> str:
        sha = secrets.token_hex(20)
        self.commits[sha] = files
        self.branches["main"] = sha
        self.log.append((sha, message))
        return sha

    def resolve(self, rev: str) -> str | None:
        return (
            self.branches.get(rev) or self.tags.get(rev) or (rev if rev in self.commits else None)
        )

    @property
    def head(self) -> str:
        return self.branches["main"]

    @property
    def files(self) -> dict[str, File]:
        return self.commits[self.head]


class Answer(Exception):
    """An error that the Hub answers."""

    def __init__(self, status: int, code: str = "", message: str = ""):
        self.status, self.code, self.message = status, code, message


class LocalHub:
    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.objects: dict[str, bytes] = {}  # LFS, by sha256
        self.seen: list[str] = []
        self.chatty: set[str] = set()  # repositories of which all is said, whatever was asked for
        self.spoil: Callable[[Request], bool] | None = None
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Bound", (Request,), {"hub": self})
        )
        self._server.daemon_threads = True
        port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{port}"
        self.large = f"http://localhost:{port}/lfs"  # another host in a client's eyes, as for the Hub's large files

    def __enter__(self) -> "LocalHub":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put(self, repo: str, files: dict[str, bytes], private: bool = False) -> str:
        """A commit of somebody else: a repository that holds these files and no others. Its sha."""
        found = self.repos.setdefault(repo, Repo(private))
        return found.commit(
            {path: File(content, path.endswith(LFS)) for path, content in files.items()}
        )


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""

    def _serve(self) -> None:
        url = urlsplit(self.path)
        self.query = {k: v[-1] for k, v in parse_qs(url.query).items()}
        self.expand = parse_qs(url.query).get("expand", [])
        self.words = [
            unquote(w) for w in url.path.split("/")[1:]
        ]  # a revision may hold an escaped /
        self.hub.seen.append(f"{self.command} {url.path}")
        try:
            self.body = self._body()
            if self.hub.spoil is not None and self.hub.spoil(self):
                return
            self._route()
        except Answer as error:
            headers = {"X-Error-Code": error.code, "X-Error-Message": error.message}
            self.answer(
                error.status,
                json.dumps({"error": error.message}).encode(),
                {k: v for k, v in headers.items() if v},
            )
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def answer(
        self, status: int, content: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for key, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(key, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def say(self, value: object, status: int = 200) -> None:
        self.answer(status, json.dumps(value).encode())

    def drop(self) -> bool:
        """Breaks the connection without a word."""
        self.close_connection = True
        self.connection.shutdown(2)
        return True

    @property
    def who(self) -> str | None:
        said = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if said and said not in TOKENS:
            raise Answer(401, message="Invalid credentials in Authorization header")
        return TOKENS.get(said)

    def _route(self) -> None:
        match self.words:
            case ["api", "whoami-v2"]:
                self.say(
                    {
                        "name": self._somebody(),
                        "type": "user",
                        "orgs": [],
                        "auth": {"type": "access_token"},
                    }
                )
            case ["api", "repos", "create"]:
                self._create()
            case ["api", "validate-yaml"]:
                self.say({"errors": [], "warnings": []})
            case ["api", "datasets", user, name, *rest]:
                self._api(f"{user}/{name}", rest)
            case ["datasets", user, name, "info", "lfs", "objects", "batch"]:
                self._lfs_batch(f"{user}/{name.removesuffix('.git')}")
            case ["datasets", user, name, "resolve", rev, *path] if path:
                self._resolve(f"{user}/{name}", rev, "/".join(path))
            case ["lfs", oid]:
                self._lfs_object(oid)
            case _:
                raise Answer(404, message="no such page")

    def _somebody(self) -> str:
        if self.who is None:
            raise Answer(401, message="Invalid username or password.")
        return self.who

    def _readable(self, name: str) -> Repo:
        repo, who = self.hub.repos.get(name), self.who
        if repo is None or (repo.private and who != name.split("/")[0]):
            raise Answer(
                404 if who else 401, "RepoNotFound", "Repository not found"
            )  # without a token the Hub does not say which
        return repo

    def _writable(self, name: str) -> Repo:
        if self._somebody() != name.split("/")[0]:
            raise Answer(403, message="You don't have the rights to write")
        return self._readable(name)

    def _at(self, repo: Repo, rev: str) -> str:
        sha = repo.resolve(rev)
        if sha is None:
            raise Answer(404, "RevisionNotFound", f"Invalid rev id: {rev}")
        return sha

    def _create(self) -> None:
        asked = json.loads(self.body)
        name = f"{asked.get('organization') or self._somebody()}/{asked['name']}"
        if self._somebody() != name.split("/")[0]:
            raise Answer(
                403, message="You don't have the rights to create a dataset under this namespace"
            )
        there = name in self.hub.repos
        if not there:
            private = bool(asked.get("private")) or asked.get("visibility") == "private"
            self.hub.repos[name] = Repo(private)
            self.hub.repos[name].commit(
                {".gitattributes": File(b"*.parquet filter=lfs\n", lfs=False)}, "initial commit"
            )
        self.say(
            {"url": f"{self.hub.url}/datasets/{name}", "id": name, "name": name},
            409 if there else 200,
        )

    def _api(self, name: str, rest: list[str]) -> None:
        match (self.command, rest):
            case ("GET", []):
                repo = self._readable(name)
                self.say(self._info(name, repo, repo.head))
            case ("GET", ["revision", rev]):
                repo = self._readable(name)
                self.say(self._info(name, repo, self._at(repo, rev)))
            case ("GET", ["tree", rev, *folder]):
                self._tree(self._readable(name), rev, "/".join(folder).strip("/"))
            case ("POST", ["paths-info", rev]):
                self._paths_info(self._readable(name), rev)
            case ("GET", ["refs"]):
                repo = self._readable(name)

                def listed(kind, found):
                    return [
                        {"name": n, "ref": f"refs/{kind}/{n}", "targetCommit": c}
                        for n, c in found.items()
                    ]

                self.say(
                    {
                        "branches": listed("heads", repo.branches),
                        "tags": listed("tags", repo.tags),
                        "converts": [],
                    }
                )
            case ("POST", ["preupload", rev]):
                self._preupload(self._writable(name), rev)
            case ("POST", ["commit", "main"]):
                self._commit(name, self._writable(name))
            case ("POST", ["tag", rev]):
                repo, tag = self._writable(name), json.loads(self.body)["tag"]
                if tag in repo.tags:
                    raise Answer(409, message="Tag exists")
                repo.tags[tag] = self._at(repo, rev)
                self.say({})
            case _:
                raise Answer(404, message="no such page")

    def _info(self, name: str, repo: Repo, sha: str) -> dict:
        files = [{"rfilename": path} for path in repo.commits[sha]]
        about = {
            "_id": "0" * 24,
            "id": name,
            "author": name.split("/")[0],
            "sha": sha,
            "private": repo.private,
            "gated": False,
            "disabled": False,
        }
        if self.expand and name not in self.hub.chatty:
            return {k: about[k] for k in ("_id", "id", *self.expand)}
        about["cardData"] = repo.card
        return about | {
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "lastModified": TIME,
            "createdAt": TIME,
            "siblings": files,
        }

    @staticmethod
    def _entry(path: str, file: File) -> dict:
        lfs = (
            {"lfs": {"oid": file.sha256, "size": len(file.content), "pointerSize": 130}}
            if file.lfs
            else {}
        )
        return {
            "type": "file",
            "path": path,
            "oid": git_oid(file.content),
            "size": len(file.content),
        } | lfs

    def _tree(self, repo: Repo, rev: str, folder: str) -> None:
        files = {
            p: f
            for p, f in repo.commits[self._at(repo, rev)].items()
            if not folder or p.startswith(f"{folder}/")
        }
        if folder and not files:
            raise Answer(404, "EntryNotFound", f"{folder} does not exist")
        depth = len(PurePosixPath(folder).parts)
        folders = {
            str(parent)
            for p in files
            for parent in PurePosixPath(p).parents
            if len(parent.parts) > depth
        }
        entries = [self._entry(p, f) for p, f in files.items()] + [
            {"type": "directory", "path": d, "oid": "0" * 40, "size": 0} for d in sorted(folders)
        ]
        if self.query.get("recursive", "false").lower() not in ("true", "1"):
            entries = [e for e in entries if len(PurePosixPath(e["path"]).parts) == depth + 1]
        self.say(entries)

    def _paths_info(self, repo: Repo, rev: str) -> None:
        asked = json.loads(self.body)["paths"]
        files = repo.commits[self._at(repo, rev)]
        self.say([self._entry(p, files[p]) for p in asked if p in files])

    def _preupload(self, repo: Repo, rev: str) -> None:
        files = repo.commits[self._at(repo, rev)]
        ignored = files[".gitignore"].content.decode().split() if ".gitignore" in files else []
        answers = []
        for asked in json.loads(self.body)["files"]:
            path = asked["path"]
            there = {"oid": files[path].oid} if path in files else {}
            ignore = any(fnmatch(path, pattern) for pattern in ignored)
            answers.append(
                {
                    "path": path,
                    "uploadMode": "lfs" if path.endswith(LFS) else "regular",
                    "shouldIgnore": ignore,
                }
                | there
            )
        self.say({"files": answers})

    def _lfs_batch(self, name: str) -> None:
        self._writable(name)
        answers = []
        for asked in json.loads(self.body)["objects"]:
            here = (
                {}
                if asked["oid"] in self.hub.objects
                else {"actions": {"upload": {"href": f"{self.hub.large}/{asked['oid']}"}}}
            )
            answers.append({"oid": asked["oid"], "size": asked["size"]} | here)
        self.say({"transfer": "basic", "objects": answers})

    def _lfs_object(self, oid: str) -> None:
        if self.command != "PUT" and "Authorization" in self.headers:
            raise Answer(400, message="a token was sent to another host")
        if self.command == "PUT":
            if hashlib.sha256(self.body).hexdigest() != oid:
                raise Answer(400, message="wrong checksum")
            self.hub.objects[oid] = self.body
            self.say({})
        else:
            self._content(self.hub.objects[oid], {})

    def _commit(self, name: str, repo: Repo) -> None:
        lines = [json.loads(line) for line in self.body.splitlines() if line.strip()]
        with self.hub.lock:
            header = lines[0]["value"]
            if header.get("parentCommit") not in (None, repo.head):
                raise Answer(
                    412, message="A commit has happened since. Please refresh and try again."
                )
            files = dict(repo.files)
            for line in lines[1:]:
                value = line["value"]
                match line["key"]:
                    case "file":
                        files[value["path"]] = File(base64.b64decode(value["content"]), lfs=False)
                    case "lfsFile":
                        if value["oid"] not in self.hub.objects:
                            raise Answer(
                                400,
                                message=f"LFS pointer pointed to a file that does not exist: {value['path']}",
                            )
                        files[value["path"]] = File(self.hub.objects[value["oid"]], lfs=True)
                    case "deletedFile":
                        del files[value["path"]]
                    case key:
                        raise Answer(400, message=f"unknown operation {key}")
            sha = repo.commit(files, header["summary"])
        self.say(
            {
                "success": True,
                "commitOid": sha,
                "commitUrl": f"{self.hub.url}/datasets/{name}/commit/{sha}",
                "hookOutput": "",
            }
        )

    def _resolve(self, name: str, rev: str, path: str) -> None:
        repo = self._readable(name)
        sha = self._at(repo, rev)
        file = repo.commits[sha].get(path)
        if file is None:
            raise Answer(404, "EntryNotFound", f"{path} does not exist")
        headers = {"X-Repo-Commit": sha, "ETag": f'"{file.oid}"'}
        if file.lfs:
            self.hub.objects.setdefault(file.sha256, file.content)
            linked = {
                "X-Linked-Size": str(len(file.content)),
                "X-Linked-Etag": f'"{file.sha256}"',
                "Location": f"{self.hub.large}/{file.sha256}",
            }
            self.answer(302, b"", headers | linked)
        else:
            self._content(file.content, headers)

    def _content(self, content: bytes, headers: dict[str, str]) -> None:
        status = 200
        if (asked := self.headers.get("Range", "")).startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or len(content) - 1), len(content) - 1) + 1
            headers, status = (
                headers | {"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"},
                206,
            )
            content = content[start:stop]
        self.answer(
            status,
            content,
            {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
            | headers
            | {"Content-Length": str(len(content))},
        )
