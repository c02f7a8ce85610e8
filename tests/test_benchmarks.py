"""What the benchmarks compare is the same work: every shape gives the same rows."""

from collections import defaultdict
from typing import Any

import pytest
from django.db import connection

from benchmarks.corpus import SIZES
from benchmarks.databases import floor_of
from benchmarks.goals import judged, statement_goals
from benchmarks.loading import fill
from benchmarks.measuring import Spread, ratio
from benchmarks.works import (
    ANEW,
    EVERY_ROW,
    FLOOR,
    NEWCOMER,
    ONLY,
    ORM,
    PRODUCT,
    TOOLSET,
    WHOLE,
    Works,
    flat,
    reading,
)

ROWS = ("list", "read")


@pytest.fixture
def works(committed_db: None) -> Any:
    works = Works(fill(SIZES["tiny"], progress=False), floor_of(connection))
    yield works
    works.floor.close()


def test_every_shape_of_the_same_work_gives_the_same_rows(works: Works) -> None:
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for one in works.all():
        result = one.run()
        if one.work != TOOLSET and ONLY not in one.work and one.work.startswith(ROWS):
            found[one.work][one.shape] = flat(result)
    assert set(found[reading(100, "middle")]) == {PRODUCT, ANEW, FLOOR, ORM, WHOLE, EVERY_ROW}
    for work, rows in found.items():
        few = 0 if NEWCOMER in work else 7 if "50 of 10," in work else 50
        assert len(rows[PRODUCT]) == few, work
        assert {shape: given == rows[PRODUCT] for shape, given in rows.items()} == dict.fromkeys(
            rows, True
        ), work
    assert all(one["reached"] for one in statement_goals(works))


def test_a_goal_is_reached_by_the_median_of_its_rounds() -> None:
    within, beyond = Spread.of([1.0, 1.1, 9.0]), Spread.of([1.0, 1.3, 1.4])
    assert judged("a ratio", within, most=1.2)["reached"]
    assert not judged("a ratio", beyond, most=1.2)["reached"]
    assert judged("a ratio", beyond, least=1.2)["reached"]
    assert not judged("a ratio", within, least=1.2)["reached"]


def test_a_ratio_is_taken_round_by_round() -> None:
    assert ratio([2.0, 40.0, 6.0], [1.0, 20.0, 3.0]) == Spread(2.0, 2.0, 2.0)
