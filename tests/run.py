"""Runs the tests on each database, and says loudly which one could not be tested.

python -m tests.run [arguments for pytest]
"""

import os
import subprocess
import sys

from tests.databases import POSTGRESQL, SQLITE, started_postgresql

BANNER = "=" * 70


def main(arguments: list[str]) -> int:
    """The exit status: 0 where every database was tested and every test passed."""
    subprocess.run([sys.executable, "-m", "coverage", "erase"], check=True)
    failed = [name for name in (SQLITE, POSTGRESQL) if not run(name, arguments)]
    covered = report() if not arguments else True
    return 1 if failed or not covered else 0


def run(database: str, arguments: list[str]) -> bool:
    """Whether the tests passed on one database; a missing one passes outside CI, and is shouted about."""
    if database == POSTGRESQL and not os.environ.get("DATABASE_URL"):
        try:
            started_postgresql()
        except Exception as error:  # whatever kept it from starting
            print(f"{BANNER}\nPOSTGRESQL WAS NOT TESTED: it did not start ({error!r}).\n{BANNER}", flush=True)
            return not os.environ.get("CI")
    print(f"== Tests on {database}", flush=True)
    command = [sys.executable, "-W", "error", "-m", "coverage", "run", "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, env={**os.environ, "TEST_DATABASE": database}, check=False).returncode == 0


def report() -> bool:
    """Combine the coverage of both runs and show what no test reached."""
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "--quiet"], check=True)
    return subprocess.run([*coverage, "report"], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
