"""tool-errors: a framework is imported with its own adapter alone, and where it is missing, that says so."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from history_access import adapters

ROOT = Path(__file__).parent.parent
FRAMEWORKS = ("agents", "anthropic", "langchain_core", "mcp", "openai", "pydantic_ai")
EXTRAS = {
    path.stem: extra[1]
    for path in Path(adapters.__file__).parent.glob("[a-z]*.py")
    if (extra := re.search(r'with from_extra\("([a-z-]+)"\)', path.read_text(encoding="utf-8")))
}

PROGRAM = """
import importlib, json, os, sys

os.environ["DJANGO_SETTINGS_MODULE"] = "demo.settings"
import django

django.setup()
frameworks, with_extra = json.loads(sys.argv[1])
for name in ("tools", "adapters", "adapters.calls", "adapters.openai", "adapters.anthropic"):
    importlib.import_module("history_access." + name)
loaded = sorted({name.partition(".")[0] for name in sys.modules} & set(frameworks))


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in frameworks:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
told = {}
for name in with_extra:
    try:
        importlib.import_module("history_access.adapters." + name)
    except ImportError as error:
        told[name] = [str(error), error.name]
print(json.dumps([loaded, told]))
"""


def test_an_adapter_says_which_extra_it_needs_and_nothing_else_needs_one():
    """tool-errors: importing the tools, and the adapters for the clients, loads no framework."""
    given = json.dumps([FRAMEWORKS, sorted(EXTRAS)])
    command = [sys.executable, "-W", "error", "-c", PROGRAM, given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded, told = json.loads(done.stdout)
    assert loaded == []
    assert set(told) == set(EXTRAS) >= {"pydantic_ai", "openai_agents", "langchain"}
    for name, (message, module) in told.items():
        assert module.partition(".")[0] in FRAMEWORKS
        assert message == (
            f"No module named {module!r}. "
            f"This adapter needs an extra: pip install 'history-access[{EXTRAS[name]}]'"
        )


def test_every_extra_that_an_adapter_names_is_offered():
    """tool-errors"""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
