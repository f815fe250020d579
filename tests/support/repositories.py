"""Real Git repositories for tests, as ordinary and as hostile as needed."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.org",
    "GIT_COMMITTER_NAME": "Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "PATH": os.environ["PATH"],
}


class SourceRepository:
    """A repository with a work tree, which stands for the one at the operator's Git host."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "-b", "main")

    def git(self, *arguments: str, data: bytes = b"") -> str:
        """Run Git in it and return what it says."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=IDENTITY,
            input=data,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, str | bytes], *, executable: bool = False) -> str:
        """Commit ``files`` and return the commit's hash."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            path.chmod(0o755 if executable else 0o644)
        return self.commit_all()

    def commit_all(self) -> str:
        """Commit the work tree as it is and return the commit's hash."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "-m", "A change")
        return self.git("rev-parse", "HEAD")

    def commit_tree(self, entries: Mapping[str, tuple[str, str]]) -> str:
        """Commit a tree written by hand: name → (mode, object), which Git itself would refuse."""
        raw = b"".join(
            f"{mode.lstrip('0')} {name}".encode() + b"\0" + bytes.fromhex(value)
            for name, (mode, value) in sorted(entries.items())
        )
        tree = self.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=raw)
        commit = self.git("commit-tree", tree, "-m", "By hand")
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def blob(self, content: bytes) -> str:
        """Store ``content`` and return its hash."""
        return self.git("hash-object", "-w", "--stdin", data=content)
