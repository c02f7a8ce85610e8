"""reach-one-door: only the door and what decides on reach can get at sessions and messages."""

import ast
from collections.abc import Iterator
from pathlib import Path

import history_access

PACKAGE = Path(history_access.__file__).parent
SHOWS_NO_WORDS = {"compiled_basis", "primary", "webhooks", "webhooks_of"}
"""What others may take from the module of the platform's models: none gives a session or a message."""

DOOR = {"door/conversations.py", "door/messages.py", "door/picking.py"}
CHECKS = {f"checks/{name}.py" for name in ("indexes", "models", "tables")}
SCALING = "management/commands/scale_history.py"
MAY = {*CHECKS, "checks/answers.py", "erasing.py", "reach.py", "turns.py", SCALING, *DOOR}
"""Besides the models themselves. The checks, erasing and the SQL for a cluster look at tables and columns,
never at rows; but for the check of the authority's answers, which takes keys and whether a right holds."""


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Each module that a file imports, with the name that it takes from it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "*") for alias in node.names)


def ways_in() -> Iterator[tuple[str, str]]:
    """Every import by which a file could reach words, outside the agent platform's tables and testing."""
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        if file.startswith(("agent_platform/", "models/", "testing/")):
            continue
        for module, name in imported(path):
            whole = f"{module}.{name}"
            if module == "history_access.models.platform" and name not in SHOWS_NO_WORDS:
                yield file, name
            elif whole == "history_access.models.platform" or "history_access.agent_platform" in whole:
                yield file, whole


def test_reach_one_door() -> None:
    found = set(ways_in())
    assert {file for file, _ in found} == MAY
    assert {file for file, name in found if name == "message_model"} == {
        *CHECKS,
        SCALING,
        "door/conversations.py",
        "door/messages.py",
    }
    assert {name for file, name in found if file == "reach.py"} == {
        "session_model",
        "turn_model",
    }
