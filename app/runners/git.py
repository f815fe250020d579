"""Running Git on what others wrote: an environment of its own, no prompts, no hooks, a time limit.

The token reaches Git through a credential helper that is bound to the template's own host and reads
it from the environment of the Git process alone. So it is in no argument list and no file; Git asks
for it only when the server demands it; and a redirect to another host never sees it, which an extra
header would not guarantee.
"""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from app.clock import Clock
from app.errors import RunFailure
from app.runners.child import Program, Timing, supervise
from app.runners.redaction import Redactor
from app.runners.stopping import Stop, Stopped

# What the operator's own environment may say to Git: the way out of the network, and whom to trust.
INHERITED = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
GIT = shutil.which("git") or "/usr/bin/git"
DEFAULT_USER = "x-access-token"
MOST_OUTPUT = 8 * 1024 * 1024
MOST_DETAIL = 600

_SCP_LIKE = re.compile(r"[^/:@]+@[^/:]+:")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HELPER = (
    "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' "
    '"$BELLRINGER_GIT_USER" "$BELLRINGER_GIT_TOKEN"; }; f'
)
_CONFIGURATION = (
    ("core", "hooksPath", "/dev/null"),
    ("core", "fsmonitor", "false"),
    ("core", "autocrlf", "false"),
    ("core", "protectHFS", "true"),
    ("core", "protectNTFS", "true"),
    ("core", "logAllRefUpdates", "false"),
    ("gc", "auto", "0"),
    ("maintenance", "auto", "false"),
    ("transfer", "unpackLimit", "1"),
    ("submodule", "recurse", "false"),
    ("fetch", "recurseSubmodules", "false"),
    ("protocol", "allow", "never"),
)
_HINTS = (
    ("could not read Username", "It does not exist or is private: set BELLRINGER_GIT_TOKEN."),
    ("Authentication failed", "Check BELLRINGER_GIT_TOKEN."),
    ("Permission denied (publickey", "Check the SSH key file and that it may read the repository."),
    ("Host key verification failed", "Add the host to the known_hosts of the worker's user."),
    ("invalid index-pack output", "It may be larger than the cache may be, or the disk is full."),
)


class GitFailed(Exception):
    """Git ended with an error; the message is its own, without secrets."""


@dataclass(frozen=True, slots=True)
class GitAccess:
    """Where repositories come from, and with what right.

    ``url_template`` holds ``{repository}`` once and begins with ``https://``, ``ssh://``,
    ``file://``, ``git@host:`` or, to this machine only, ``http://``. ``token`` is for HTTPS,
    ``ssh_key_file`` for SSH. ``environment`` is what Git takes from the operator's (see
    ``INHERITED``). A bare repository ``owner/repo.git`` below ``local_directory`` comes before what
    the template says. Raises :exc:`ValueError`.
    """

    url_template: str
    token: str | None = field(default=None, repr=False)
    ssh_key_file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    local_directory: Path | None = None

    def __post_init__(self) -> None:
        if self.url_template.count("{repository}") != 1:
            raise ValueError("The Git URL must hold {repository} exactly once.")
        parts = self._parts()
        if self.scheme not in ("https", "ssh", "file", "http"):
            raise ValueError("The Git URL must begin with https://, ssh:// or file:///.")
        if self.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise ValueError("The Git URL must use https: over http anybody could change the code.")
        if parts.password is not None:
            raise ValueError("The Git URL must not hold a password: set BELLRINGER_GIT_TOKEN.")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("The Git token must be visible ASCII characters.")
        if self.ssh_key_file is not None and not re.fullmatch(
            r'[^"\x00-\x1f]+', str(self.ssh_key_file)
        ):
            raise ValueError(
                "The path of the SSH key file must hold no quote or control character."
            )

    @property
    def scheme(self) -> str:
        """The protocol of the template."""
        return "ssh" if _SCP_LIKE.match(self.url_template) else self._parts().scheme

    @property
    def protocols(self) -> frozenset[str]:
        """The only protocols that Git may speak."""
        return frozenset({self.scheme, *(["file"] if self.local_directory else [])})

    @property
    def origin(self) -> str:
        """The scheme, host and port that the token is for."""
        parts = self._parts()
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def user(self) -> str:
        """The user name that goes with the token."""
        return self._parts().username or DEFAULT_USER

    def url(self, repository: str) -> str:
        """Return the address of ``repository``."""
        if self.local_directory is not None:
            local = self.local_directory.absolute() / f"{repository}.git"
            if local.is_dir():
                return f"file://{local}"
        return self.url_template.replace("{repository}", repository)

    def nor_local(self, repository: str) -> str:
        """Return a sentence that says where a local repository was looked for first, if one was."""
        if self.local_directory is None or self.url(repository).startswith("file://"):
            return ""
        return f" There is no local {self.local_directory / repository}.git either."

    def redactor(self) -> Redactor:
        """Return what masks the token, bare and as it is sent."""
        if self.token is None:
            return Redactor()
        return Redactor((self.token, f"{self.user}:{self.token}"))

    def _parts(self) -> SplitResult:
        return urlsplit(self.url_template)


class Git:
    """The Git program with one access; its configuration is kept in ``home``."""

    def __init__(
        self,
        access: GitAccess,
        home: Path,
        *,
        clock: Clock,
        binary: str,
        timeout: float,
        lease: float,
        max_file_bytes: int,
    ) -> None:
        self._access = access
        self._clock = clock
        self._binary = binary
        self._timeout = timeout
        self._timing = Timing(lease=lease, grace=0.0, linger=0.0)
        self._max_file_bytes = max_file_bytes
        self._redactor = access.redactor()
        self._home = home
        self._files: tuple[Path, ...] = ()
        self._environment = self._write_configuration()

    def run(
        self,
        *arguments: str,
        stop: Stop,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        remote: bool = False,
        kept: Sequence[int] = (),
        on_stdout: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Run Git and return what it wrote, unless ``on_stdout`` takes that.

        ``remote`` hands it the token. Raises :exc:`GitFailed`, :exc:`Stopped`, or
        :exc:`RunFailure` (``clone-failed``) at the time limit.
        """
        stdout, stderr = bytearray(), bytearray()

        def on_output(stream: Literal["stdout", "stderr"], data: bytes) -> None:
            if stream == "stdout" and on_stdout is not None:
                on_stdout(data)
                return
            kept_bytes = stdout if stream == "stdout" else stderr
            kept_bytes += data[: MOST_OUTPUT - len(kept_bytes)]

        variables = {**self._environment_of_git(), **(environment or {})}
        if remote and self._access.token is not None:
            variables["BELLRINGER_GIT_USER"] = self._access.user
            variables["BELLRINGER_GIT_TOKEN"] = self._access.token
        ending = supervise(
            Program(
                arguments=(self._binary, *arguments),
                environment=variables,
                directory=directory or self._home,
                max_file_bytes=self._max_file_bytes,
                kept=kept,
            ),
            stop=stop,
            on_output=on_output,
            clock=self._clock,
            timing=self._timing,
            timeout=self._timeout,
        )
        if ending.cause == "stopped":
            raise Stopped
        if ending.cause == "timeout":
            raise RunFailure(
                "clone-failed", f"Git did not finish within its limit of {self._timeout:g} seconds."
            )
        if ending.cause == "not-started":
            raise GitFailed(f"{self._binary} could not be started: {ending.error}")
        if ending.status != 0:
            raise GitFailed(self._reason(bytes(stderr), ending.status))
        return bytes(stdout)

    def _reason(self, stderr: bytes, status: int | None) -> str:
        text = self._redactor.message(stderr.decode("utf-8", "replace"))
        printable = "".join(c if c.isprintable() else " " for c in text.replace("\n", "; "))
        reason = printable.strip("; ")[-MOST_DETAIL:] or f"Git ended with status {status}"
        hints = [hint for sign, hint in _HINTS if sign in text]
        return " ".join((reason.rstrip(".") + ".", *hints[:1]))

    def _environment_of_git(self) -> dict[str, str]:
        if not all(path.exists() for path in self._files):
            # Somebody cleared the cache away, as one may with a cache.
            self._environment = self._write_configuration()
        return self._environment

    def _write_configuration(self) -> dict[str, str]:
        """Write the files that Git and SSH read; return the environment that names them."""
        access = self._access
        entries = [
            *_CONFIGURATION,
            *((f'protocol "{name}"', "allow", "always") for name in sorted(access.protocols)),
        ]
        if "file" in access.protocols:
            # The operator named these repositories, whoever owns them.
            entries.append(("safe", "directory", "*"))
        if access.scheme in ("https", "http"):
            entries.append((f'credential "{access.origin}"', "helper", _HELPER))
        ssh = ["BatchMode yes", "StrictHostKeyChecking yes", "ConnectTimeout 30"]
        if access.ssh_key_file is not None:
            path = str(access.ssh_key_file.absolute()).replace("%", "%%")
            ssh += ["IdentitiesOnly yes", f'IdentityFile "{path}"']
        configuration = self._write("gitconfig", "".join(map(_entry, entries)))
        ssh_configuration = self._write("ssh_config", "\n".join(ssh) + "\n")
        self._files = (configuration, ssh_configuration)
        return {
            **access.environment,
            "PATH": f"{Path(self._binary).parent}:{os.defpath}",
            "HOME": str(self._home),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(configuration),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_SSH_COMMAND": f"ssh -F {_quoted(str(ssh_configuration))}",
            "GIT_SSH_VARIANT": "ssh",
        }

    def _write(self, name: str, text: str) -> Path:
        """Write a file whose name follows from its content, so that two workers never disagree."""
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = self._home / f"{name}-{digest}"
        draft = self._home / f"{name}-{digest}.{secrets.token_hex(8)}"
        draft.touch(mode=0o600)
        draft.write_text(text)
        draft.replace(path)
        return path


def _entry(entry: tuple[str, str, str]) -> str:
    section, name, value = entry
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{section}]\n\t{name} = "{escaped}"\n'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
