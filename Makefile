# From a fresh clone, with nothing but Python 3.11+ and make: `make demo`, `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
READY := $(VENV)/.ready
WORKERS ?= 2
# Libraries start no threads beside the processes of pytest: threads that wait for a processor that
# another process has keep the others spinning (a solve of half a second took half a minute).
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS)
# How often `make crash` kills the service at random, for each database and kind of run.
CRASHES ?= 100
# A second environment, with no extra but `sign`, and what is tested in it beside recorded bits.
BARE := .venv-core
CORE_TESTS := $(addprefix tests/,receipts models links eraser demo store/test_run.py)
# Rooms whose tests take seconds.
QUICK := $(wildcard tests/test_*.py) \
  $(addprefix tests/,docs graph kernels models datasets receipts reports aggregation eraser nodes)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all quick lint kernels short rest core crash postgresql chromium integrations bench docs notebooks site pictures package clean

help:
	@echo "make setup   install the package and its tools into $(VENV)"
	@echo "make demo    fit, forget and verify on the embedded graph; installs no more than that needs"
	@echo "make quick   lint and the fast tests, in seconds: between two edits"
	@echo "make test    lint, type check, import contract, every promise, in minutes: before a commit"
	@echo "make test-all  the same, then what takes long, in full: before a change lands"
	@echo "make lint    only the first three"
	@echo "make core    test the core in $(BARE), where torch is not installed"
	@echo "make crash   kill the service some hundred times, on both databases"
	@echo "make bench   run the benchmarks that need no GPU"
	@echo "make docs    write the generated parts of the documentation again"
	@echo "make notebooks  execute the tutorials again, and store what they print"
	@echo "make site    build the documentation as pages for offline reading, in site/"
	@echo "make pictures  run the demonstration, and put its pictures and output into README and docs"
	@echo "make package build the package, check it, and try it out in a clean venv"
	@echo "make clean   remove $(VENV) and all caches"

setup: $(READY)

# Made again only when what it is made from has changed. The first is enough for a demonstration.
$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "GraphEraser needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "hint: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[sign]'
	@touch $(CORE)

$(READY): $(CORE) lab/pyproject.toml
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,fast-partition]' -e lab
	@touch $(READY)

demo: $(CORE)
	$(BIN)/grapheraser demo

# Kernels are compiled while mypy has the other processor.
test: $(READY)
	@$(MAKE) --no-print-directory -j2 lint kernels
	@$(MAKE) --no-print-directory short

# What `make test` leaves out comes second: other processors, browsers, databases, Ray, notebooks, the
# site, crashes, attacks, and every example of Hypothesis.
test-all: test
	@$(MAKE) --no-print-directory rest

# Seconds: for the while between two edits.
quick: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(PYTEST) -q --part short -m "not slow and not data" -x $(QUICK)

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(wildcard src lab tests tools examples)
	$(BIN)/lint-imports

# Compiled once for all checkouts and test runs of a user, outside the checkout.
kernels: $(READY)
	@$(BIN)/python -m tests.kept_kernels

short: $(READY)
	$(PYTEST) --part short

rest: $(READY) postgresql chromium integrations
	$(PYTEST) --part rest

core: $(BARE)/.ready
	OMP_NUM_THREADS=1 $(BARE)/bin/python -m pytest -q -n $(WORKERS) -m "not slow and not long and not data" $(CORE_TESTS)
	OMP_NUM_THREADS=1 $(BARE)/bin/python -m pytest -q -n $(WORKERS) tests/property/test_golden.py -k cpu

$(BARE)/.ready: $(CORE)
	@test -x $(BARE)/bin/python || $(PYTHON) -m venv $(BARE)
	$(BARE)/bin/python -m pip install --quiet -c constraints.txt -e '.[sign]' hypothesis pytest pytest-xdist
	@$(BARE)/bin/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is not None)' || \
	  { echo "error: the core has brought torch along." >&2; exit 1; }
	@touch $(BARE)/.ready

crash: $(READY) postgresql
	CRASHES=$(CRASHES) $(PYTEST) tests/service/test_crash.py

# The tests of the service start a PostgreSQL server of their own. Where none is installed and none
# can be, they are skipped.
postgresql:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get update && apt-get install -y --no-install-recommends postgresql; } >/dev/null 2>&1; } || \
	  echo "PostgreSQL is not installed: its tests are skipped."

# The tests of the dashboard look at it with Chromium. Where it is not installed and can't be, they
# are skipped.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  command -v google-chrome >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1; } || \
	  echo "Chromium is not installed: the tests of the dashboard in a browser are skipped."

# What integrations are tested with: molecules, ONNX, vector indexes and a PostgreSQL with one. Tests
# of what can't be installed are skipped.
integrations: $(READY)
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[molecules,onnx]' \
	  onnxruntime faiss-cpu lancedb || \
	  echo "rdkit, ONNX or vector indexes are not installed: their tests are skipped."
	@$(BIN)/python -m pip install --quiet -c constraints.txt pgserver || \
	  echo "PostgreSQL with pgvector is not installed: its tests are skipped."

bench: $(READY)
	$(BIN)/grapheraser bench all --out lab/results

docs: $(READY)
	@$(BIN)/python -m grapheraser_lab.publish
	@$(BIN)/python -m tools.reference
	@$(BIN)/python -m tools.pages

notebooks: $(READY)
	@$(BIN)/python -m tools.notebooks

# Warnings are errors.
site: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

pictures: $(READY)
	@$(BIN)/python -m tools.pictures
	@$(BIN)/python -m tools.screens

# The sdist, the wheel made from it, and the wheel tried out in a venv of its own, without pins.
package: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tools.package check dist
	$(BIN)/python -m tools.package smoke dist

clean:
	rm -rf dist site $(VENV) $(BARE) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
