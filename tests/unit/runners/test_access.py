"""Where repositories come from."""

from pathlib import Path

from app.runners.git import GitAccess


def test_a_local_repository_comes_before_the_template(tmp_path: Path) -> None:
    (tmp_path / "acme" / "shop.git").mkdir(parents=True)
    access = GitAccess("https://git.example.org/{repository}.git", local_directory=tmp_path)
    assert access.url("acme/shop") == f"file://{tmp_path}/acme/shop.git"
    assert access.url("acme/other") == "https://git.example.org/acme/other.git"
    assert access.protocols == {"https", "file"}


def test_without_a_local_directory_only_the_template_counts() -> None:
    access = GitAccess("https://git.example.org/{repository}.git")
    assert access.url("acme/shop") == "https://git.example.org/acme/shop.git"
    assert access.protocols == {"https"}
