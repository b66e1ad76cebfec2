# make quickstart | test | test-slow | check | check-results | bench | avalanche | docs
# With another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
AVALANCHE := .venv-avalanche
PYTEST := $(VENV)/bin/python -m pytest -n auto --dist worksteal
# In one process, which reads the rows and draws the figures once.
PYTEST_ROWS := $(VENV)/bin/python -m pytest -n 0 tests/results

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-slow check check-results bench avalanche docs

help:
	@echo "make quickstart     install into $(VENV), train three learners and open the results"
	@echo "make test           run the tests that a contributor needs"
	@echo "make test-slow      run the tests that take minutes: protocols, statistics, kills, reproduction"
	@echo "make check          check format, lint, types and imports; run the unit tests"
	@echo "make check-results  compute every published number from the committed rows again"
	@echo "make bench          time the renderer beside other packages, in $(PEERS)"
	@echo "make avalanche      train the toy stream with Avalanche's methods, in $(AVALANCHE), and ours"
	@echo "make docs           build the documentation site into site/"

quickstart: $(VENV)/.installed
	$(VENV)/bin/everlearn quickstart

test: $(VENV)/.installed
	$(PYTEST) -m "not gpu and not slow" --ignore tests/results

test-slow: $(VENV)/.installed
	$(PYTEST) -m "slow and not gpu" --ignore tests/results --durations=10
	$(PYTEST_ROWS)

check: $(VENV)/.installed
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PYTEST) -m "not integration and not slow and not gpu" --ignore tests/results

check-results: $(VENV)/.installed
	$(PYTEST_ROWS)

bench: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/render.py --out results

avalanche: $(VENV)/.installed $(AVALANCHE)/.installed
	$(VENV)/bin/python benchmarks/avalanche.py --out results --peer $(AVALANCHE)/bin/python

docs: $(VENV)/.installed-docs
	$(VENV)/bin/mkdocs build --strict

$(VENV)/.installed: EXTRAS := dev,plot
$(PEERS)/.installed: EXTRAS := peers

$(VENV)/.installed $(PEERS)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "everlearn needs Python 3.11 or newer, found: $$($(PYTHON) --version 2>&1)"; \
	    echo "name a newer one, for example: make quickstart PYTHON=python3.12"; \
	    exit 1; } >&2
	@echo "installing everlearn[$(EXTRAS)] into $(@D), about a minute"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[docs]'
	@touch $@

# torch first and by its exact version: a looser one brings gigabytes of CUDA.
$(AVALANCHE)/.installed: constraints.txt
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt torch==2.13.0 numpy
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt avalanche-lib==0.6.0 torchvision==0.28.0
	@touch $@
