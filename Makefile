# Two commands for newcomers: `make demo` and `make test`. Each makes its environment by itself.

PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/python -W error

.PHONY: help demo test plain coverage tampering captured contract bench growth soak speed lint golden bench-audit \
	bench-erasing clean

help:
	@echo "make demo    an example platform: an agent's morning digest, its record, and three refusals"
	@echo "make test    style, types, import layers, and the tests on SQLite and PostgreSQL"
	@echo "make coverage  the tests again, measuring which branches they run"
	@echo "make captured  a captured model that knows every id makes 10,000 calls, and every interleaving"
	@echo "make contract  the whole contract suite on each of the wrong platforms"
	@echo "make golden  write anew what is made from the code: JSON Schemas, the reference, the rules"
	@echo "make tampering  every kind of tampering with the record on 200 random records, on both databases"
	@echo "make bench   the product beside hand-written SQL, the plain ORM and other shapes; SIZE=medium, SIZE=full"
	@echo "make growth  ten times as much of everything, side by side: five million reads"
	@echo "make soak    a day of calls in ten minutes: memory, kept SQL and connections"
	@echo "make plain   the tests with every query built anew, as on a platform that makes no promise for its SQL"
	@echo "make speed   docs/speed.md and its drawings, from the results of SIZE=medium"
	@echo "make bench-audit  the auditors' list at a million reads: page 1 against page 1,000"
	@echo "make bench-erasing  how long readers wait while 5,000 values are erased or pruned"
	@echo "make clean   remove the environment and what it made"

demo: $(VENV)/.ready
	@$(RUN) manage.py demo $(ARGUMENTS)

test: lint
	@$(RUN) -m tests.run $(ARGUMENTS)

coverage: $(VENV)/.ready
	@$(RUN) -m tests.run --covered

tampering: $(VENV)/.ready
	@TAMPERED_RECORDS=200 $(RUN) -m tests.run tests/test_seals_tampering.py tests/test_seals_clocks.py

captured: $(VENV)/.ready
	@CAPTURED_CALLS=12000 EVERY_INTERLEAVING=1 $(RUN) -m tests.run \
		tests/test_refs_captured.py tests/test_refs_interleavings.py

contract: $(VENV)/.ready
	@EVERY_RULE=1 $(RUN) -m tests.run tests/test_contract_faults.py

lint: $(VENV)/.ready
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

bench: $(VENV)/.ready
	@SIZE=$(SIZE) $(RUN) -m benchmarks.run $(ARGUMENTS)

growth: $(VENV)/.ready
	@$(RUN) -m benchmarks.growth $(ARGUMENTS)

soak: $(VENV)/.ready
	@$(RUN) -m benchmarks.soak $(ARGUMENTS)

plain: $(VENV)/.ready
	@COMPILED_QUERIES=no $(RUN) -m tests.run $(ARGUMENTS)

speed: $(VENV)/.ready
	@$(RUN) -m docs.make_speed

bench-audit: $(VENV)/.ready
	@$(RUN) -m benchmarks.audit_pages

bench-erasing: $(VENV)/.ready
	@$(RUN) -m benchmarks.erasing

golden: $(VENV)/.ready
	@$(RUN) -m tests.golden
	@$(RUN) -m docs.make_reference
	@$(RUN) -m docs.make_rules

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@# Twice --quiet: what pip warns of in the machine's own settings is no news here; its errors are shown.
	@echo "Making the environment in $(VENV) (once; it takes a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[postgresql,rest,mcp,pydantic-ai,openai-agents,langchain,demo,postgresql-server,test,lint]'
	@touch $@

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .coverage* demo/*.sqlite3*
