"""The command line against a real server, as a person would use it."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]

CREATE = ("automation", "create", "nightly", "--repository", "acme/shop", "--workflow", "x.sh")


def test_an_automation_is_created_shown_listed_and_deleted(
    bellringer: Command, server: dict[str, str]
) -> None:
    created = bellringer(*CREATE, "--schedule", "0 3 * * *", "--json", **server)
    assert created.returncode == 0, created.stderr
    made = json.loads(created.stdout)
    assert made["triggers"] == [
        {"type": "api", "id": "manual", "enabled": True},
        {"type": "schedule", "id": "schedule", "enabled": True, "expression": "0 3 * * *"},
    ]
    shown = bellringer("automation", "show", "nightly", **server)
    assert "At 03:00 UTC, every day" in shown.stdout
    assert re.search(r"next: \d{4}-\d\d-\d\dT03:00:00Z", shown.stdout)
    assert (
        json.loads(bellringer("automation", "show", "nightly", "--json", **server).stdout) == made
    )
    listed = bellringer("automation", "list", **server)
    assert listed.stdout == "nightly\tnightly\tacme/shop\tmain\tx.sh\tapi, 0 3 * * *\n"
    again = bellringer(*CREATE, **server)
    assert again.returncode == 4
    assert "exists already" in again.stderr
    unconfirmed = bellringer("automation", "delete", "nightly", stdin="n\n", **server)
    assert unconfirmed.returncode == 1
    assert bellringer("automation", "delete", "nightly", "--yes", **server).returncode == 0
    gone = bellringer("automation", "show", "nightly", **server)
    assert gone.returncode == 3
    assert gone.stderr == "bellringer: There is no automation 'nightly'.\n"


def test_what_breaks_the_rules_is_said_with_its_place(
    bellringer: Command, server: dict[str, str]
) -> None:
    refused = bellringer(*CREATE, "--schedule", "@daily", "--ref", "-x", **server)
    assert refused.returncode == 1
    assert "/target/ref:" in refused.stderr
    assert "/triggers/1/expression:" in refused.stderr
    assert "'0 0 * * *'" in refused.stderr


def test_a_definition_is_created_from_toml_and_from_json(
    bellringer: Command, server: dict[str, str], tmp_path: Path
) -> None:
    toml = 'name = "T"\n[target]\nrepository = "a/b"\nref = "main"\nworkflow = "w"\n'
    (tmp_path / "t.toml").write_text(toml)
    made = bellringer("automation", "create", "t", "--file", "t.toml", **server)
    assert made.returncode == 0, made.stderr
    shown = bellringer("automation", "show", "t", "--json", **server).stdout
    copy = {**json.loads(shown), "id": "u"}
    made = bellringer("automation", "create", "u", "--file", "-", stdin=json.dumps(copy), **server)
    assert made.returncode == 0, made.stderr


def editor(tmp_path: Path, code: str) -> str:
    script = tmp_path / "editor.py"
    script.write_text(f"import sys\npath = sys.argv[1]\ntext = open(path).read()\n{code}\n")
    return f"{sys.executable} {script}"


REPLACE_NAME = """open(path, "w").write(text.replace('"name": "nightly"', '"name": "Edited"'))"""


def test_edit_saves_what_the_editor_left(
    bellringer: Command, server: dict[str, str], tmp_path: Path
) -> None:
    bellringer(*CREATE, **server)
    edited = bellringer(
        "automation", "edit", "nightly", EDITOR=editor(tmp_path, REPLACE_NAME), **server
    )
    assert edited.returncode == 0, edited.stderr
    shown = json.loads(bellringer("automation", "show", "nightly", "--json", **server).stdout)
    assert shown["name"] == "Edited"
    unchanged = bellringer("automation", "edit", "nightly", EDITOR="true", **server)
    assert unchanged.stdout == "Nothing was changed.\n"


def test_edit_loses_nothing_when_somebody_was_faster(
    bellringer: Command, server: dict[str, str], tmp_path: Path
) -> None:
    bellringer(*CREATE, **server)
    faster = f"""
import httpx
url = "{server["URL"]}/api/v1/automations/nightly"
headers = {{"Authorization": "Bearer {server["TOKEN"]}"}}
body = httpx.get(url, headers=headers).json()
body["name"] = "Theirs"
headers["If-Match"] = '"' + body.pop("revision") + '"'
assert httpx.put(url, headers=headers, json=body).status_code == 200
{REPLACE_NAME}
"""
    edited = bellringer("automation", "edit", "nightly", EDITOR=editor(tmp_path, faster), **server)
    assert edited.returncode == 4
    kept = re.search(r"Your text is kept in (\S+)\.\n", edited.stderr)
    assert kept is not None
    assert json.loads(Path(kept[1]).read_text())["name"] == "Edited"
    shown = json.loads(bellringer("automation", "show", "nightly", "--json", **server).stdout)
    assert shown["name"] == "Theirs"


def test_edit_keeps_the_text_that_breaks_a_rule(
    bellringer: Command, server: dict[str, str], tmp_path: Path
) -> None:
    bellringer(*CREATE, **server)
    for code in (
        """open(path, "w").write(text.replace("acme/shop", "acme"))""",
        """open(path, "w").write("{")""",
    ):
        edited = bellringer(
            "automation", "edit", "nightly", EDITOR=editor(tmp_path, code), **server
        )
        assert edited.returncode == 1
        assert "Nothing was saved. Your text is kept in " in edited.stderr


def test_runs_are_started_listed_canceled_and_repeated(
    bellringer: Command, server: dict[str, str]
) -> None:
    bellringer(*CREATE, **server)
    started = bellringer("automation", "run", "nightly", "--input", '{"a": 1}', "--json", **server)
    run = json.loads(started.stdout)
    assert (run["state"], run["events"]) == ("queued", 1)
    canceled = bellringer("run", "cancel", str(run["id"]), "--json", **server)
    assert json.loads(canceled.stdout)["state"] == "canceled"
    assert bellringer("run", "cancel", str(run["id"]), **server).returncode == 4
    rerun = bellringer("run", "rerun", str(run["id"]), "--json", **server)
    assert json.loads(rerun.stdout)["rerun_of"] == run["id"]
    queued = bellringer("run", "list", "--state", "queued", "--json", **server)
    assert [r["id"] for r in json.loads(queued.stdout)] == [json.loads(rerun.stdout)["id"]]
    followed = bellringer("run", "log", str(run["id"]), "--follow", **server)
    assert followed.returncode == 1
    assert f"Run {run['id']} canceled" in followed.stderr
    assert bellringer("run", "show", "999", **server).returncode == 3


def test_a_wrong_token_says_what_to_do(bellringer: Command, server: dict[str, str]) -> None:
    refused = bellringer("automation", "list", **{**server, "TOKEN": "bell_wrong"})
    assert refused.returncode == 1
    assert "bellringer token create" in refused.stderr
    assert "bell_wrong" not in refused.stderr


def test_a_server_that_is_away_is_code_5(bellringer: Command) -> None:
    away = bellringer("run", "list", URL="http://127.0.0.1:1")
    assert away.returncode == 5
    assert "does not answer" in away.stderr


def test_tokens_are_made_shown_once_and_revoked(bellringer: Command, sqlite_url: str) -> None:
    made = bellringer(
        "token", "create", "deploy", "--role", "editor", "--json", DATABASE_URL=sqlite_url
    )
    token = json.loads(made.stdout)
    listed = bellringer("token", "list", "--json", DATABASE_URL=sqlite_url)
    assert [(t["id"], t["role"]) for t in json.loads(listed.stdout)] == [(token["id"], "editor")]
    assert token["token"] not in listed.stdout
    assert bellringer("token", "revoke", token["id"], DATABASE_URL=sqlite_url).returncode == 0
    assert bellringer("token", "revoke", token["id"], DATABASE_URL=sqlite_url).returncode == 3


def test_cron_needs_no_database(bellringer: Command) -> None:
    told = bellringer("cron", "0 9 * * 1-5", "--after", "2026-12-01T00:00:00Z", "--count", "1")
    assert told.stdout == "At 09:00 UTC, Monday through Friday\n  2026-12-01T09:00:00Z\n"
    assert bellringer("cron", "0 0 31 2 *").stdout.endswith("It never fires.\n")
    assert bellringer("cron", "@daily").returncode == 1
    assert bellringer("cron", "* * * * *", "--after", "yesterday").returncode == 2


def test_wrong_settings_stop_every_command_with_their_names(bellringer: Command) -> None:
    for command in (("settings",), ("migrate",), ("scheduler",), ("worker",), ("up",)):
        refused = bellringer(*command, CATCHUP="1", BIND="nowhere", ADMIN_TOKEN="short")
        assert refused.returncode == 2, command
        assert "BELLRINGER_CATCHUP" in refused.stderr
        assert "BELLRINGER_BIND" in refused.stderr
        assert "short" not in refused.stderr
        assert "Traceback" not in refused.stderr


def test_settings_never_show_a_secret(bellringer: Command) -> None:
    secret = "s3cret-s3cret-s3cret"
    url = f"postgresql://bell:{secret}@db/bell"
    for extra in ((), ("--json",)):
        shown = bellringer(
            *("settings", *extra),
            DATABASE_URL=url,
            ADMIN_TOKEN=secret,
            GIT_TOKEN=secret,
            TOKEN=secret,
        )
        assert shown.returncode == 0
        assert "postgresql" in shown.stdout
        assert secret not in shown.stdout + shown.stderr


def test_migrate_imports_the_directory_beside_the_settings(
    bellringer: Command, tmp_path: Path
) -> None:
    (tmp_path / "automations").mkdir()
    definition = tmp_path / "automations" / "a.toml"
    definition.write_text("name = 1")
    refused = bellringer("migrate")
    assert refused.returncode == 1
    assert "a.toml: /name: This is a string." in refused.stderr
    assert "a.toml: /target: The field 'target' is required." in refused.stderr
    definition.write_text(
        'name = "A"\ntarget = {repository = "a/b", ref = "main", workflow = "w"}\n'
    )
    assert "would be imported (a)" in bellringer("import", "automations", "--dry-run").stdout
    migrated = bellringer("migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert "1 imported (a)" in migrated.stdout
    assert not (tmp_path / "automations").exists()
    assert "already" in bellringer("migrate").stdout
    assert bellringer("import", "nowhere").returncode == 0


def test_an_unreachable_database_is_code_5(bellringer: Command) -> None:
    away = bellringer("migrate", DATABASE_URL="postgresql://u:s3cret@127.0.0.1:1/x")
    assert away.returncode == 5
    assert "not available" in away.stderr
    assert "s3cret" not in away.stderr
    assert bellringer("migrate", DATABASE_URL="oracle://x").returncode == 2


def test_a_delete_takes_no_empty_revision_and_a_star_for_any(
    bellringer: Command, server: dict[str, str]
) -> None:
    bellringer(*CREATE, **server)
    refused = bellringer("automation", "delete", "nightly", "--if-match", "", "--yes", **server)
    assert refused.returncode == 2
    assert bellringer("automation", "show", "nightly", **server).returncode == 0
    gone = bellringer(
        *("automation", "delete", "nightly", "--if-match", "*", "--yes", "--json"), **server
    )
    assert json.loads(gone.stdout) == {"id": "nightly", "deleted": True}


def test_without_a_token_it_says_where_one_was_looked_for(
    bellringer: Command, server: dict[str, str], tmp_path: Path
) -> None:
    refused = bellringer("run", "list", URL=server["URL"])
    assert f"there is no file {tmp_path}/var/admin-token" in refused.stderr


def test_what_a_run_finds_is_listed_by_name_alone(bellringer: Command) -> None:
    shown = bellringer("settings", RUN_ENV_GREETING="s3cret")
    assert "BELLRINGER_RUN_ENV_GREETING\tset (not shown)" in shown.stdout
    assert "s3cret" not in shown.stdout
