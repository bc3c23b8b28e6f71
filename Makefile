# From a fresh clone, with nothing but Python 3.11+ and make: `make demo`, `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2
# How often `make crash` kills the service at random, for each database and kind of run.
CRASHES ?= 100
# Rooms whose tests take seconds.
QUICK := $(wildcard tests/test_*.py) \
  $(addprefix tests/,docs graph kernels models datasets receipts reports aggregation eraser)

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick lint unit crash postgresql bench docs notebooks site pictures package clean

help:
	@echo "make setup   install the package and its tools into $(VENV)"
	@echo "make demo    fit, forget and verify on the embedded graph"
	@echo "make test    lint, type check, import contract, all tests"
	@echo "make quick   lint and the fast tests, in seconds"
	@echo "make lint    only the first three"
	@echo "make crash   kill the service some hundred times, on both databases"
	@echo "make bench   run the benchmarks that need no GPU"
	@echo "make docs    write the generated parts of the documentation again"
	@echo "make notebooks  execute the tutorials again, and store what they print"
	@echo "make site    build the documentation as pages for offline reading, in site/"
	@echo "make pictures  run the demonstration, and put its picture and output into the README"
	@echo "make package build the package, check it, and try it out in a clean venv"
	@echo "make clean   remove $(VENV) and all caches"

setup: $(READY)

# Made again only when what it is made from has changed.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "GraphEraser needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "hint: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,fast-partition]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/grapheraser demo

test: lint unit

# Seconds: for the while between two edits.
quick: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pytest -q -n $(WORKERS) -m "not slow and not data" -x $(QUICK)

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(wildcard src tests tools benchmarks examples)
	$(BIN)/lint-imports

unit: $(READY) postgresql
	$(BIN)/pytest -n $(WORKERS)

crash: $(READY) postgresql
	CRASHES=$(CRASHES) $(BIN)/pytest -n $(WORKERS) tests/service/test_crash.py

# The tests of the service start a PostgreSQL server of their own. Where none is installed and none
# can be, they are skipped.
postgresql:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get update && apt-get install -y --no-install-recommends postgresql; } >/dev/null 2>&1; } || \
	  echo "PostgreSQL is not installed: its tests are skipped."

bench: $(READY)
	$(BIN)/python benchmarks/measure.py

docs: $(READY)
	@$(BIN)/python -m benchmarks.guides
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

# The sdist, the wheel made from it, and the wheel tried out in a venv of its own, without pins; with
# another build of torch by `make package BESIDE=torch==2.13.0+cpu`.
package: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tools.package check dist
	$(BIN)/python -m tools.package smoke dist $(BESIDE)

clean:
	rm -rf dist site $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
