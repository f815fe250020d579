"""What the house promises of its own shape."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*ROOT.glob("app/**/*.py"), *ROOT.glob("bellringer/**/*.py")])


def test_no_file_is_over_400_lines() -> None:
    lengths = {p.relative_to(ROOT): len(p.read_text().splitlines()) for p in SOURCES}
    assert not {path: length for path, length in lengths.items() if length > 400}


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert not [p for p in SOURCES if p.stem in {"utils", "helpers", "common", "constants"}]


def test_the_alembic_directory_is_no_package() -> None:
    assert not (ROOT / "alembic" / "__init__.py").exists()


def test_every_module_says_what_it_is_for() -> None:
    assert not [p for p in SOURCES if not p.read_text().startswith('"""')]


def test_only_the_roof_reads_the_environment() -> None:
    allowed = {"app/wsgi.py", "app/cli/main.py", "app/cli/up.py", "app/cli/supervisor.py"}
    allowed |= {"app/cli/demo.py", "app/gunicorn.py", "app/api/metrics.py", "app/worker/service.py"}
    readers = {str(p.relative_to(ROOT)) for p in SOURCES if "os.environ" in p.read_text()}
    assert readers <= allowed


def test_only_the_clock_reads_the_time() -> None:
    told = ("datetime.now(", "datetime.utcnow(", "time.time(")
    readers = {
        str(p.relative_to(ROOT)) for p in SOURCES if any(call in p.read_text() for call in told)
    }
    assert readers <= {"app/clock.py"}
