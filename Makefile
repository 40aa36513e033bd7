# Two commands do everything on a machine that has only Python: `make run` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: check run test lint types contracts docs bench fidelity break lock clean

check: lint types contracts test  ## what CI runs

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

run: $(READY)  ## sets up, then shows a session of three windows going through one
	$(BIN)/compact demo

test: $(READY)  ## sets up, then runs all tests
	$(BIN)/python -m pytest --cov

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright --pythonpath $(BIN)/python

contracts: $(READY)
	$(BIN)/lint-imports

docs: $(READY)  ## the site, in site/
	$(BIN)/python tools/make_reference.py
	$(BIN)/mkdocs build --strict --quiet

bench: $(READY)  ## what a preflight costs, and how it grows
	$(BIN)/python benchmarks/preflight.py
	$(BIN)/python benchmarks/store.py

fidelity: $(READY)  ## what survives a compaction, on the transcripts in the folder that COMPACT_DATA names
	@test -n "$(COMPACT_DATA)" || { echo "set COMPACT_DATA to a folder of transcripts: see docs/measurements.md" >&2; exit 2; }
	$(BIN)/python benchmarks/fidelity --check
	$(BIN)/python benchmarks/fidelity natural --check
	$(BIN)/python benchmarks/fidelity chained --check
	$(BIN)/python benchmarks/constraints.py --data "$(COMPACT_DATA)" --end-to-end --sample 200 --check
	$(BIN)/python benchmarks/learn_constraints.py --data "$(COMPACT_DATA)" --check
	$(BIN)/python benchmarks/cost.py

break: $(READY)  ## breaks the code on purpose, one change at a time, and checks that the tests notice
	$(BIN)/python tools/break_it.py

lock:  ## rewrites requirements.lock; needs uv
	uv pip compile pyproject.toml --all-extras --group dev --universal --generate-hashes --no-emit-index-url --no-header --quiet -o requirements.lock

clean:
	rm -rf .venv build dist site .pytest_cache .ruff_cache .coverage .hypothesis .import_linter_cache
