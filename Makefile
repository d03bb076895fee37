# Every command sets up what it needs in .venv and reuses it on the next run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test lint style types compiled uncompiled minimum environments package bench mutants docs clean

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

lint: style types

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/vocabulary.py

types: $(VENV)/.dev
	$(BIN)/mypy

# Tests for which the loops are compiled that other tests use, too: two workers would compile them twice. Those of a
# cluster wait most of the time: they run where another worker can go on.
COMPILED := $(filter-out tests/backends/test_dask_workers.py,$(wildcard tests/backends/test_*.py)) \
	tests/graph/test_graph_moves.py tests/margin/test_dual.py
# Workers share the cores: threads that wait for work sleep instead of spinning. Their number is what it was.
PYTEST := SCIPY_ARRAY_API=1 OMP_WAIT_POLICY=passive OPENBLAS_THREAD_TIMEOUT=4 $(BIN)/python -m pytest -m 'not timing'

compiled: $(VENV)/.dev
	$(PYTEST) $(COMPILED)

# Tests that compile nothing; what they compiled would be compiled twice. With types after them they take as long as the
# other core compiles.
UNCOMPILED := tests/test_architecture.py tests/test_house.py tests/test_mutants.py tests/test_suite.py \
	$(filter-out tests/foundation/test_logged_warnings.py tests/inputs/test_absence.py tests/inputs/test_alignment.py, \
	$(wildcard tests/foundation/test_*.py tests/inputs/test_*.py))

# What workers of pytest-xdist run, each on one thread: `compiled`, `uncompiled` and `minimum` have those of a user.
OTHERS := $(addprefix --ignore=,$(COMPILED) $(UNCOMPILED))

# Then these are collected once: workers find their bytecode, which takes each of them longer to write than to read.
uncompiled: $(VENV)/.dev
	$(PYTEST) $(UNCOMPILED)
	$(PYTEST) -qq --collect-only $(OTHERS) >/dev/null

# Processes that tests start import the library from its bytecode, also where the environment says to write none.
test: export PYTHONDONTWRITEBYTECODE :=
# Two at a time, the longest first, so that both cores are busy to the end: a third beside the one that compiles would
# only slow it down. What each of them says is shown when it ends.
test: $(VENV)/.dev
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target compiled uncompiled types style
	$(PYTEST) -n auto --dist loadscope --one-thread $(OTHERS)
	$(BIN)/python -m pytest -m timing tests/test_promises.py tests/evaluation/test_plan_promises.py

# The lowest versions that pyproject.toml declares, of the core and of the extras that these tests use, in an environment
# with its own compiled loops. Test tools are the newest: users do not install them. Each room has its solvers, operators
# or commands tried; `make test` tries everything with the newest versions.
MINIMUM := .venv-minimum
MINIMUM_EXTRAS := plots io
MINIMUM_TESTS := tests/kernels/test_operators.py tests/partitions tests/kmeans/test_kernel_kmeans.py \
	tests/kmeans/test_kernel_kmeans_estimator.py tests/spectral/test_multi_view_spectral.py tests/margin/test_dual.py \
	tests/graph/test_graph_moves.py tests/graph/test_graph_fusion_estimator.py tests/persistence \
	tests/cli/test_cli.py tests/cli/test_cluster.py
empty :=
space := $(empty) $(empty)
comma := ,

# No --clear: it would take the compiled loops along.
$(MINIMUM)/.installed: pyproject.toml scripts/lowest.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)) and "The lowest versions have wheels for Python 3.11 and 3.12 alone; set PYTHON=python3.11.")'
	$(PYTHON) -m venv $(MINIMUM)
	$(PYTHON) scripts/lowest.py $(MINIMUM_EXTRAS) >$(MINIMUM)/lowest.txt
	$(MINIMUM)/bin/python -m pip --quiet --disable-pip-version-check install --constraint $(MINIMUM)/lowest.txt \
		-e '.[$(subst $(space),$(comma),$(MINIMUM_EXTRAS))]' pytest pytest-xdist hypothesis psutil
	@touch $@

# What `test` and `minimum` run in: with --jobs=2, one is installed while the other waits for the disk.
environments: $(VENV)/.dev $(MINIMUM)/.installed

# Old versions warn of what newer ones beside them have deprecated: matplotlib 3.9 calls names of an older pyparsing.
minimum: export PYTHONDONTWRITEBYTECODE :=
minimum: $(MINIMUM)/.installed
	$(MINIMUM)/bin/python scripts/lowest.py --check $(MINIMUM_EXTRAS)
	NUMBA_CACHE_DIR=$(abspath $(MINIMUM))/numba SCIPY_ARRAY_API=1 OMP_WAIT_POLICY=passive OPENBLAS_THREAD_TIMEOUT=4 \
		$(MINIMUM)/bin/python -m pytest -q -n auto --dist loadscope -m 'not timing' -W ignore::DeprecationWarning \
		-p no:cacheprovider $(MINIMUM_TESTS)

# Wheel and source distribution, checked, and each used from an empty environment of every Python in PYTHONS.
PYTHONS ?= $(PYTHON)
package: $(VENV)/.package
	$(BIN)/python scripts/check_package.py --python $(PYTHONS)

$(VENV)/.package: | $(BIN)/python
	$(PIP) install build twine
	@touch $@

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# Mistakes made on purpose, each against the tests of its room; some minutes on 16 cores.
mutants: $(VENV)/.dev
	$(BIN)/python scripts/mutants.py

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) $(MINIMUM) build dist docs/_build docs/gallery docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
