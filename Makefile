# Every command sets up what it needs in .venv and reuses it on the next run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test lint compiled uncompiled bench mutants docs clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernelweave needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev]'
	-$(PIP) install 'torch==2.13.0+cpu' # for the processor; where there is none, tests on a device are skipped
	@touch $@ $(VENV)/.core

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev,bench]'
	-$(PIP) install --no-deps mvlearn==0.5.0 # a baseline; its own requirements no longer install
	@touch $@ $(VENV)/.dev $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev,docs]'
	@touch $@ $(VENV)/.dev $(VENV)/.core

demo: $(VENV)/.core
	$(BIN)/kernelweave demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/vocabulary.py

# Tests for which the loops are compiled that other tests use, too: two workers would compile them twice.
COMPILED := tests/backends tests/graph/test_graph_moves.py tests/margin/test_dual.py
# Workers share the cores: threads that wait for work sleep instead of spinning. Their number is what it was.
PYTEST := SCIPY_ARRAY_API=1 OMP_WAIT_POLICY=passive OPENBLAS_THREAD_TIMEOUT=4 $(BIN)/python -m pytest -m 'not timing'

compiled: $(VENV)/.dev
	$(PYTEST) $(COMPILED)

# Tests that compile next to nothing: they run after lint, for as long as the other core compiles.
UNCOMPILED := tests/test_architecture.py tests/test_house.py tests/test_mutants.py tests/test_suite.py \
	tests/foundation tests/inputs

uncompiled: lint
	$(PYTEST) $(UNCOMPILED)

# Processes that tests start import the library from its bytecode, also where the environment says to write none.
test: export PYTHONDONTWRITEBYTECODE :=
# Lint and what follows take one core, and so do the tests that compile. What each of them says is shown when it ends.
test: $(VENV)/.dev
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target uncompiled compiled
	$(PYTEST) -n auto --dist loadscope $(addprefix --ignore=,$(COMPILED) $(UNCOMPILED))
	$(BIN)/python -m pytest -m timing tests/test_promises.py tests/evaluation/test_plan_promises.py

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# Mistakes made on purpose, each against the tests of its room; some minutes on 16 cores.
mutants: $(VENV)/.dev
	$(BIN)/python scripts/mutants.py

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
