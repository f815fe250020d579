"""What a newcomer finds on an empty database: a local repository and an automation that runs it."""

import os
import subprocess
import tempfile
from pathlib import Path

from app.automations.store import AutomationStore
from app.automations.values import Draft, ScheduleTrigger, Target
from app.errors import AlreadyExists

AUTOMATION_ID = "hello"
REPOSITORY = "bellringer/demo"
WORKFLOW = """\
#!/bin/sh
# The demo of Bellringer: it says what it was started with.
echo "Hello! I am run $BELLRINGER_RUN_ID of the automation '$BELLRINGER_AUTOMATION'."
echo "The trigger '$BELLRINGER_TRIGGER' started me, at commit $BELLRINGER_COMMIT."
echo "What I was handed is in $BELLRINGER_EVENTS:"
cat "$BELLRINGER_EVENTS"
echo
"""


def make(store: AutomationStore, repositories: Path) -> bool:
    """Make the demo unless there is, or was, any automation; tell whether it was made."""
    if store.was_ever_used():
        return False
    bare = repositories.absolute() / f"{REPOSITORY}.git"
    if not bare.exists():
        _make_repository(bare)
    draft = Draft(
        name="Hello",
        description="The demo: runs at each full minute. Delete it whenever you like.",
        target=Target(REPOSITORY, "main", "hello"),
        api_enabled=True,
        schedules=(ScheduleTrigger("every-minute", True, "* * * * *"),),
    )
    try:
        store.create(AUTOMATION_ID, draft, "demo")
    except AlreadyExists:
        return False
    return True


def _make_repository(bare: Path) -> None:
    bare.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=bare.parent) as scratch:
        tree = Path(scratch, "tree")
        workflow = tree / ".bellringer" / "workflows" / "hello.sh"
        workflow.parent.mkdir(parents=True)
        workflow.write_text(WORKFLOW, encoding="utf-8")
        workflow.chmod(0o755)
        _git(tree, "init", "--quiet", "--initial-branch=main")
        _git(tree, "add", "--all")
        _git(tree, "commit", "--quiet", "--message=A workflow that says hello")
        _git(tree, "clone", "--quiet", "--bare", str(tree), str(Path(scratch, "bare.git")))
        Path(scratch, "bare.git").rename(bare)


def _git(tree: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(tree), *arguments],
        check=True,
        capture_output=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(tree),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Bellringer",
            "GIT_AUTHOR_EMAIL": "demo@bellringer.invalid",
            "GIT_COMMITTER_NAME": "Bellringer",
            "GIT_COMMITTER_EMAIL": "demo@bellringer.invalid",
        },
    )
