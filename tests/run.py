"""Runs the tests on each database, and says loudly which one could not be tested.

python -m tests.run [--covered] [arguments for pytest]

With --covered it measures the branches that ran, on both databases together, and lists those that did not.
It takes twice as long: Python tells the tracer of every line, of Django's too.
"""

import os
import subprocess
import sys

import pytest

from tests.databases import POSTGRESQL, SQLITE, given_postgresql, quick_postgresql

BANNER = "=" * 70
COVERED = "--covered"
MEASURED = [f"--cov={name}" for name in ("settings_catalog", "history_access", "demo", "tests")]


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
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
    ]
    given = [one for one in arguments if one != COVERED]
    measuring = measured(last=database == POSTGRESQL) if COVERED in arguments else []
    return subprocess.run([*command, *measuring, *given], env=environment, check=False).returncode == 0


def measured(*, last: bool) -> list[str]:
    """What has pytest measure the branches; the last run reports what ran in either."""
    report = ["--cov-append", "--cov-report=term-missing:skip-covered"] if last else ["--cov-report="]
    return [*MEASURED, "--cov-branch", *report]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
