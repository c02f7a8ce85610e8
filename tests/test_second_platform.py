"""History access fits tables that were there before it: the whole of it, over a platform of its own.

The help desk in `tests/second_platform` has integer keys, other words for everything, messages in JSON parts
and people with roles in teams. Its tests hold reach-person, reach-account-exact, reach-trigger-owner,
reach-not-deleted, reach-now, reach-same-answer, tool-list, tool-count, tool-caps, tool-pages, tool-summary,
tool-text-is-hostile, catalog-who, record-every-read, record-label, record-erasure, record-sealed,
refs-per-turn, refs-admission, refs-two-kinds, refs-discovery and record-both-ways there. It runs the contract
suite too, and what rests on models once more on its views that lack what may be lacking.
"""

import os
import subprocess
import sys
from pathlib import Path

from django.db import connection

from tests.databases import POSTGRESQL, SQLITE

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = "tests/second_platform"


def test_the_second_platform_holds_the_rules() -> None:
    """In one process for all of its tests: a project has one user model."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {
        "DJANGO_SETTINGS_MODULE": "tests.second_platform.settings",
        "TEST_DATABASE": SQLITE if connection.vendor == "sqlite" else POSTGRESQL,
    }
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-c", f"{PLATFORM}/pytest.ini", PLATFORM]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
