"""Runs the tests on each database, and says loudly which one could not be tested.

python -m tests.run [arguments for pytest]
"""

import os
import subprocess
import sys

import pytest

from tests.databases import POSTGRESQL, SQLITE, given_postgresql, quick_postgresql

BANNER = "=" * 70
COVERED = [f"--cov={name}" for name in ("settings_catalog", "history_access", "demo", "tests")]


def main(arguments: list[str]) -> int:
    """The exit status: 0 where every database was tested and every test passed."""
    try:
        url = given_postgresql()
    except pytest.UsageError as error:
        print(f"NOTHING WAS TESTED. {error}")
        return 1
    failed = [name for name in (SQLITE, POSTGRESQL) if not tested(name, url, arguments)]
    return 1 if failed else 0


def tested(database: str, url: str | None, arguments: list[str]) -> bool:
    """Whether the tests passed on one database; outside CI a missing one passes, and is shouted about.

    `url` is that of a PostgreSQL, where one is given.
    """
    if database == POSTGRESQL and not url:
        try:
            url = quick_postgresql()
        except Exception as error:  # whatever kept it from starting
            print(f"{BANNER}\nPOSTGRESQL WAS NOT TESTED: it did not start ({error!r}).\n{BANNER}", flush=True)
            return not os.environ.get("CI")
    print(f"== Tests on {database}", flush=True)
    environment = {**os.environ, "TEST_DATABASE": database}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what one run has compiled, the others need not
    if database == POSTGRESQL and url:
        environment["DATABASE_URL"] = url
    last = database == POSTGRESQL and not arguments
    report = ["--cov-append", "--cov-report=term-missing:skip-covered"] if last else ["--cov-report="]
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist=loadgroup",
        *COVERED,
        "--cov-branch",
        *report,
    ]
    return subprocess.run([*command, *arguments], env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
