"""What the benchmarks compare is the same work: every shape gives the same rows."""

from collections import defaultdict
from typing import Any

import pytest
from django.db import connection

from benchmarks.corpus import SIZES
from benchmarks.databases import floor_of
from benchmarks.loading import fill
from benchmarks.works import ONLY, TOOLSET, Works, flat

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
    for work, rows in found.items():
        product = rows["product"]
        assert {shape: given == product for shape, given in rows.items()} == dict.fromkeys(rows, True), work
