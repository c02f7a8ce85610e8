# Two commands for newcomers: `make demo` and `make test`. Each makes its environment by itself.

PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/python -W error

.PHONY: help demo test lint golden bench-audit bench-erasing clean

help:
	@echo "make demo    an example platform: an agent's morning digest, its record, and three refusals"
	@echo "make test    style, types, import layers, and the tests on SQLite and PostgreSQL"
	@echo "make golden  write the JSON Schemas of the tools anew"
	@echo "make bench-audit  the auditors' list at a million reads: page 1 against page 1,000"
	@echo "make bench-erasing  how long readers wait while 5,000 values are erased or pruned"
	@echo "make clean   remove the environment and what it made"

demo: $(VENV)/.ready
	@$(RUN) manage.py demo $(ARGUMENTS)

test: lint
	@$(RUN) -m tests.run

lint: $(VENV)/.ready
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

bench-audit: $(VENV)/.ready
	@$(RUN) -m benchmarks.audit_pages

bench-erasing: $(VENV)/.ready
	@$(RUN) -m benchmarks.erasing

golden: $(VENV)/.ready
	@$(RUN) -m tests.golden
	@$(RUN) -m docs.make_reference

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@echo "Making the environment in $(VENV) (once; it takes a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[postgresql,rest,demo,postgresql-server,test,lint]'
	@touch $@

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .coverage* demo/*.sqlite3*
