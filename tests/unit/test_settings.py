"""Settings: every rule, from the environment and from the file, and no secret shown."""

import re
from pathlib import Path

import pytest

from app.errors import SettingsInvalid
from app.settings import Settings, default_of, load, table

SECRET = "s3cr3t-of-16-chars"

GOOD = {
    "database_url": ["sqlite:///x.db", "postgresql://u:p@h/n", "mysql://u@h/n", "mariadb://h/n"],
    "database_pool": ["1", "100"],
    "database_timeout": ["1", "0.5e1", "600"],
    "data_dir": ["/srv/bellringer", "ä"],
    "local_repositories": ["/srv/git"],
    "bind": ["127.0.0.1:0", "[::1]:65535", "host-1.example:80"],
    "web_workers": ["1", "64"],
    "admin_token": ["x" * 16],
    "token_cache": ["0", "300"],
    "rate_limit": ["600/minute", "1/day"],
    "catch_up": ["0", "31536000"],
    "worker_concurrency": ["1", "256"],
    "worker_group": ["a", "0_-" + "z" * 60],
    "lease": ["1", "3600"],
    "drain": ["0"],
    "run_timeout": ["1", "604800"],
    "run_attempts": ["1", "100"],
    "run_user": ["nobody", "_svc.run-1"],
    "git_url": ["file:///srv/{repository}.git", "git@example.org:{repository}"],
    "git_token": ["t"],
    "git_ssh_key": ["/k"],
    "git_timeout": ["1"],
    "git_cache_size": ["1"],
    "git_cache_age": ["60"],
    "metrics_bind": ["0.0.0.0:9000"],
    "log_format": ["console", "json"],
    "log_level": ["debug", "info", "warning", "error"],
    "url": ["http://h:1", "https://h/prefix"],
    "token": ["t"],
}
BAD = {
    "database_url": ["nonsense", "oracle://u:hidden@h/n", "sqlite://", "sqlite:///:memory:"],
    "database_pool": ["0", "101", "-1", "1.5", "many", "١"],
    "database_timeout": ["0", "601", "nan", "inf", "-inf", "soon"],
    "data_dir": ["a\0b"],
    "local_repositories": ["a\0b"],
    "bind": ["8080", "host:", ":80", "host:65536", "host:80\n", "a b:80", "::1:80"],
    "web_workers": ["0", "65"],
    "admin_token": ["short", "x" * 15, "with a space in it", "ä" * 16, "x" * 16 + "\n"],
    "token_cache": ["-1", "301"],
    "rate_limit": ["600", "0/minute", "600/week", "600 / minute"],
    "catch_up": ["-1", "31536001"],
    "worker_concurrency": ["0", "257"],
    "worker_group": ["A", "-a", "a" * 64, "a\n"],
    "lease": ["0.5", "3601"],
    "drain": ["-1", "86401"],
    "run_timeout": ["0", "604801"],
    "run_attempts": ["0", "101"],
    "run_user": ["a b", "-a", "a:b"],
    "git_url": ["https://example.org/x.git", "https://example.org/{repository}/{name}", "{} "],
    "git_token": ["a b", "ä"],
    "git_ssh_key": ["a\0b"],
    "git_timeout": ["0", "86401"],
    "git_cache_size": ["0", "-5", "1e9"],
    "git_cache_age": ["59"],
    "metrics_bind": ["9000"],
    "log_format": ["JSON", "xml"],
    "log_level": ["INFO", "trace"],
    "url": ["ftp://h", "h:80", "http://"],
    "token": ["a b"],
}


def refused(environ: dict[str, str], directory: Path) -> tuple[str, ...]:
    with pytest.raises(SettingsInvalid) as caught:
        load(environ, directory)
    return caught.value.problems


def test_every_setting_has_a_good_and_a_bad_value_here() -> None:
    assert set(GOOD) == set(BAD) == set(table())


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in GOOD.items() for t in texts])
def test_a_good_value_is_taken(name: str, text: str, tmp_path: Path) -> None:
    settings = load({f"BELLRINGER_{name.upper()}": text}, tmp_path)
    value = getattr(settings, name)
    assert value is not None
    assert float(value) == float(text) if isinstance(value, int | float) else str(value) == text


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in BAD.items() for t in texts])
def test_a_bad_value_is_refused_by_its_name_and_not_repeated(
    name: str, text: str, tmp_path: Path
) -> None:
    variable = f"BELLRINGER_{name.upper()}"
    (problem,) = refused({variable: text}, tmp_path)
    assert problem.startswith(f"{variable}: ")
    assert "hidden" not in problem


def test_nothing_given_is_all_defaults(tmp_path: Path) -> None:
    settings = load({}, tmp_path)
    for name in set(table()) - {"database_url", "local_repositories"}:
        assert getattr(settings, name) == default_of(name)
    assert settings.database_url == "sqlite:///var/bellringer.db"
    assert settings.run_env == ()
    assert settings.file is None
    assert settings.automations_dir == Path("automations")


def test_the_database_stands_in_the_data_dir(tmp_path: Path) -> None:
    settings = load({"BELLRINGER_DATA_DIR": "/srv/b"}, tmp_path)
    assert settings.database_url == "sqlite:////srv/b/bellringer.db"
    assert settings.local_repositories == Path("/srv/b/local-repositories")


def test_an_empty_variable_is_one_that_is_not_set(tmp_path: Path) -> None:
    assert load({"BELLRINGER_LOG_LEVEL": ""}, tmp_path).log_level == "info"


def test_others_variables_are_none_of_ours(tmp_path: Path) -> None:
    load({"PATH": "/bin", "BELLRINGERX": "1", "bellringer_bind": "nonsense"}, tmp_path)


def test_what_a_run_finds_in_its_environment_is_no_error(tmp_path: Path) -> None:
    load({"BELLRINGER_RUN_ID": "1", "BELLRINGER_EVENTS": "/x", "BELLRINGER_DUE_AT": ""}, tmp_path)


def test_an_unknown_name_is_refused_and_the_nearest_one_offered(tmp_path: Path) -> None:
    (problem,) = refused({"BELLRINGER_DATABSE_URL": SECRET}, tmp_path)
    assert "BELLRINGER_DATABASE_URL" in problem
    assert SECRET not in problem
    (problem,) = refused({"BELLRINGER_Bind": "x"}, tmp_path)
    assert "BELLRINGER_Bind" in problem
    (tmp_path / "settings.toml").write_text("log_levle = 'info'\n")
    (problem,) = refused({}, tmp_path)
    assert "log_level" in problem


def test_all_problems_come_together(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("nothing = 1\nlease = 0\n[run_env]\n'a b' = 'x'\n")
    problems = refused({"BELLRINGER_BIND": "x", "BELLRINGER_NONE": "x"}, tmp_path)
    assert len(problems) == 5


# --- the file ---------------------------------------------------------------------------------------


def test_the_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("bind = 'h:1'\nlease = 20\ncatch_up = 1.5\n[run_env]\nTZ = 'UTC'\n")
    settings = load({"BELLRINGER_BIND": "h:2"}, tmp_path)
    assert (settings.bind, settings.lease, settings.catch_up) == ("h:2", 20.0, 1.5)
    assert settings.run_env == (("TZ", "UTC"),)
    assert settings.file == file
    assert settings.automations_dir == tmp_path / "automations"


def test_a_named_file_is_read_instead(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("lease = 20\n")
    other = tmp_path / "other.toml"
    other.write_text("drain = 1\n")
    settings = load({"BELLRINGER_SETTINGS": str(other)}, tmp_path)
    assert (settings.lease, settings.drain) == (30.0, 1.0)


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    for named in (tmp_path / "none.toml", tmp_path):
        (problem,) = refused({"BELLRINGER_SETTINGS": str(named)}, tmp_path)
        assert "BELLRINGER_SETTINGS" in problem


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"bind = \n", "line 1"),
        (b"\xff", "UnicodeDecodeError"),
        (b"lease = true\n", "lease: expected a string or a number"),
        (b"lease = [1]\n", "lease: expected a string or a number"),
        (b"lease = 2026-01-01\n", "lease: expected a string or a number"),
        (b"run_env = 'x'\n", "run_env: expected a table"),
        (b"[run_env]\nX = 1\n", "run_env.X: expected a string"),
        (b"[run_env]\nBELLRINGER_X = 'x'\n", "no name for an environment variable"),
        (b"database_pool = 5.5\n", "database_pool: expected a whole number"),
        (b"BIND = 'h:1'\n", "there is no setting 'BIND'"),
    ],
)
def test_a_broken_file_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(content)
    (problem,) = refused({}, tmp_path)
    assert problem.startswith(str(file))
    assert said in problem


@pytest.mark.parametrize("name", ["1X", "A-B", "", "A B", "Ä", "BELLRINGER_RUN_ID"])
def test_a_name_that_no_environment_holds_is_refused(name: str, tmp_path: Path) -> None:
    (problem,) = refused({f"BELLRINGER_RUN_ENV_{name}": "x"}, tmp_path)
    assert "no name for an environment variable" in problem


def test_run_env_is_sorted_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("[run_env]\nB = 'file'\nA = 'file'\n")
    settings = load({"BELLRINGER_RUN_ENV_B": "environment"}, tmp_path)
    assert settings.run_env == (("A", "file"), ("B", "environment"))


# --- secrets ----------------------------------------------------------------------------------------


def test_no_secret_is_ever_shown(tmp_path: Path) -> None:
    settings = load(
        {
            "BELLRINGER_DATABASE_URL": f"postgresql://u:{SECRET}@h/n?sslpassword={SECRET}&a=b",
            "BELLRINGER_GIT_URL": f"https://bot:{SECRET}@h/{{repository}}.git",
            "BELLRINGER_URL": f"https://bot:{SECRET}@h",
            "BELLRINGER_ADMIN_TOKEN": SECRET,
            "BELLRINGER_GIT_TOKEN": SECRET,
            "BELLRINGER_TOKEN": SECRET,
            "BELLRINGER_RUN_ENV_PASSWORD": SECRET,
        },
        tmp_path,
    )
    assert SECRET in settings.database_url
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    shown = settings.shown()
    assert not any(SECRET in (text or "") for text in shown.values())
    assert shown["admin_token"] == "set (not shown)"
    assert shown["database_url"].startswith("postgresql://u:***@h/n")
    assert shown["git_url"] == "https://***@h/{repository}.git"


def test_what_is_no_secret_is_shown_as_one_would_write_it(tmp_path: Path) -> None:
    shown = load({"BELLRINGER_DRAIN": "0.5"}, tmp_path).shown()
    assert set(shown) == set(table())
    assert shown["git_cache_age"] == "2592000"
    assert shown["drain"] == "0.5"
    assert shown["token"] is None
    assert shown["git_url"] == "https://github.com/{repository}.git"
    assert repr(Settings()).startswith("Settings(")


def test_settings_are_frozen(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        load({}, tmp_path).bind = "x"  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(table()))
def test_each_setting_says_what_it_is_in_a_sentence(name: str) -> None:
    assert re.fullmatch(r"[A-Z`].*\.", table()[name].doc)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "lease = " + "1" * 5000])
def test_a_file_that_no_parser_can_take_in_is_a_wrong_setting(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(SettingsInvalid, match=r"settings\.toml"):
        load({}, tmp_path)
