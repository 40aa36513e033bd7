# Two commands do everything on a machine that has only Python: `make run` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps
RUN_READY := .venv/.run
READY := .venv/.ready
PEERS := .venv-peers/bin
PEERS_READY := .venv-peers/.ready

.PHONY: help run test coverage check lint types contracts break mutate soak docs bench bench-peers bench-tasks regression fidelity lock clean

help:  ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(RUN_READY): requirements-run.lock pyproject.toml
	@$(PYTHON) src/compact/core/python_version.py
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements-run.lock
	$(PIP) --no-build-isolation --editable .
	touch $@

$(READY): requirements.lock requirements-templates.lock $(RUN_READY)
	$(PIP) --require-hashes -r requirements.lock -r requirements-templates.lock
	touch $@

$(PEERS_READY): requirements-peers.lock pyproject.toml
	@$(PYTHON) src/compact/core/python_version.py
	$(PYTHON) -m venv .venv-peers
	$(PEERS)/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements-peers.lock
	$(PEERS)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

run: $(RUN_READY)  ## install what the demo needs (seconds), then run a session six times longer than its window; its last line opens it in the browser
	$(BIN)/compact demo

test: $(READY)  ## install the rest, then run all tests: about 45 minutes on two cores
	$(BIN)/python tools/run_tests.py

coverage: $(READY)  ## the same, and how much of the code they run
	$(BIN)/python tools/run_tests.py --coverage

check: lint types contracts  ## what CI runs: all this, one break in eight, a few mutants, and all tests
	$(BIN)/python tools/break_it.py --sample
	$(BIN)/python tools/mutate.py --short
	$(BIN)/python tools/run_tests.py

lint: $(READY)  ## style and likely mistakes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## types, strictly
	$(BIN)/pyright --pythonpath $(BIN)/python

contracts: $(READY)  ## which package may import which
	$(BIN)/lint-imports

break: $(READY)  ## break the code on purpose, one line at a time: the tests must notice
	$(BIN)/python tools/break_it.py

mutate: $(READY)  ## change every expression of the core in turn, and list the changes that no test notices: hours; can be stopped and continued
	$(BIN)/python tools/mutate.py

soak: $(READY)  ## what takes hours: faults, kills, load and random conversations at full size; prints how many, and the breaches
	COMPACT_TEST_SOAK=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal --timeout 3600 -m "hypothesis or soak"

docs: $(READY)  ## build the site, in site/
	$(BIN)/python tools/make_reference.py
	$(BIN)/mkdocs build --strict --quiet

bench: $(READY)  ## measure what a preflight costs, and how it grows
	$(BIN)/python benchmarks/preflight.py
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/store.py

bench-peers: $(PEERS_READY)  ## measure what agent frameworks ship beside Compact, each by its own code, and write the tables of docs/why.md; installs them in .venv-peers
	@test -n "$(COMPACT_DATA)" || { echo "set COMPACT_DATA to a folder of transcripts, or run $(PEERS)/python benchmarks/peers --sample" >&2; exit 2; }
	$(PEERS)/python benchmarks/peers --write
	$(PEERS)/python -m pytest -q tests/benchmarks/test_peers.py

bench-tasks: $(READY)  ## run scripted agents to the end of 200 tasks, compacted and not: about 20 minutes
	$(BIN)/python benchmarks/tasks --jobs 2 --check --json benchmarks/tasks/results.json

regression: $(READY)  ## a short form of every benchmark, in half a minute: compare its figures with benchmarks/regression/results.md
	$(BIN)/python benchmarks/regression

fidelity: $(READY)  ## measure what survives a compaction, on the transcripts in the folder that COMPACT_DATA names
	@test -n "$(COMPACT_DATA)" || { echo "set COMPACT_DATA to a folder of transcripts: see docs/measurements.md" >&2; exit 2; }
	$(BIN)/python benchmarks/fidelity --check
	$(BIN)/python benchmarks/fidelity natural --check
	$(BIN)/python benchmarks/fidelity chained --check
	$(BIN)/python benchmarks/constraints.py --data "$(COMPACT_DATA)" --end-to-end --sample 200 --check
	$(BIN)/python benchmarks/constraint_precision.py --data "$(COMPACT_DATA)" --check
	$(BIN)/python benchmarks/learn_constraints.py --data "$(COMPACT_DATA)" --check
	$(BIN)/python benchmarks/recall.py --check
	$(BIN)/python benchmarks/cost.py

lock:  ## rewrite the locks; needs uv
	uv pip compile pyproject.toml --all-extras --group dev --universal --generate-hashes --no-emit-index-url --no-header --quiet -o requirements.lock
	uv pip compile pyproject.toml --extra viewer --group build --universal --generate-hashes --no-emit-index-url --no-header --quiet -o requirements-run.lock
	uv pip compile pyproject.toml --group peers --universal --generate-hashes --no-emit-index-url --no-header --quiet -o requirements-peers.lock

clean:  ## remove everything that was made
	rm -rf .venv .venv-peers build dist site .pytest_cache .ruff_cache .coverage .coverage.* .hypothesis .import_linter_cache
