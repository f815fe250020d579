"""``python -m benchmarks [NAME …]``: run all benchmarks, or those named, one process each."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(
    path.stem.rstrip("_")
    for path in HERE.glob("*.py")
    if not path.stem.startswith("_") and 'if __name__ == "__main__"' in path.read_text()
)


def main() -> int:
    """Run the benchmarks; the exit code is 1 if one of them could not be run."""
    wanted = sys.argv[1:] or NAMES
    if unknown := set(wanted) - set(NAMES):
        print(
            f"there is no benchmark {sorted(unknown)}; known: {', '.join(NAMES)}", file=sys.stderr
        )
        return 2
    failed = 0
    for name in wanted:
        module = name if (HERE / f"{name}.py").exists() else f"{name}_"
        print(f"# {name}", file=sys.stderr, flush=True)
        failed |= subprocess.run(
            [sys.executable, "-m", f"benchmarks.{module}"], check=False
        ).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
