"""The page about speed says what was measured, and what measures it still runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.db import connection

from benchmarks import soak
from benchmarks.corpus import SIZES
from benchmarks.loading import fill
from docs import make_speed

ROOT = Path(__file__).resolve().parent.parent


def page() -> str:
    return make_speed.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return make_speed.files()


def test_the_page_and_its_drawings_are_up_to_date(files: dict[str, str]) -> None:
    for name, text in files.items():
        found = make_speed.PAGE.with_name(name).read_text(encoding="utf-8")
        assert found == text, f"{name}: run make speed"


def test_every_goal_stands_on_the_page_with_what_came_of_it() -> None:
    """One that was not reached, too."""
    result = json.loads(make_speed.RESULT.read_text(encoding="utf-8"))
    goals = [one for found in result["databases"].values() for one in found["goals"]]
    lines = [line for line in page().splitlines() if line.startswith("|")]
    assert len(goals) > 30
    for one in goals:
        verdict = "reached" if one["reached"] else "**not reached**"
        wanted = f"| {one['goal']} | {one['wanted']} | "
        assert [line for line in lines if line.startswith(wanted) and line.endswith(f"| {verdict} |")], one
    assert {one["reached"] for one in goals} == {True, False}


def test_the_drawings_are_drawings(files: dict[str, str]) -> None:
    drawings = {name: text for name, text in files.items() if name.endswith(".svg")}
    assert len(drawings) == 3
    for name, text in drawings.items():
        tree = ElementTree.fromstring(text)
        assert len(tree.findall("{http://www.w3.org/2000/svg}polyline")) >= 4, name
        assert f"]({name})" in page()


def test_a_soak_of_a_moment_runs_everything(committed_db: None) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("it is PostgreSQL that is soaked")
    result = soak.soaked(fill(SIZES["tiny"], progress=False), 2.5)
    assert result["failed"] == []
    wanted = {
        "conversation_list",
        "quoted_conversation",
        "rights and settings changed",
        "turns begun and ended",
    }
    assert wanted <= set(result["counts"])


def test_growth_is_measured_in_two_databases() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("it is PostgreSQL that grows")
    code = "import json; from benchmarks.growth import grown; print(json.dumps(grown(12_000, 60, 1)))"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    jobs: dict[str, Any] = json.loads(ran.stdout)["jobs"]
    assert len(jobs) == 7
    assert all(one["small_ms"] > 0 and one["large_ms"] > 0 for one in jobs.values())
