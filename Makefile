# Needs only make and Python 3.11 or newer; everything else is made here.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready

# The tests start hundreds of processes: what Python compiled is kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test journeys lint check format lock clean

help:            ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ —/'

install: $(READY)  ## the environment, from the hash-pinned lock
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "CiteLoop needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11.")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)   ## one real campaign, end to end, on this machine
	@$(BIN)/citeloop demo

test: $(READY)   ## the tests; real Temporal, real Postgres, real HTTP on loopback
	@$(BIN)/python -m pytest -m "not journey" --numprocesses 3 --dist worksteal $(ARGS)

journeys: $(READY)  ## the long tests that kill real processes
	@$(BIN)/python -m pytest -m journey --numprocesses 2 --dist worksteal $(ARGS)

lint: $(READY)   ## style, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check: lint test ## everything that must hold before a commit

format: $(READY) ## let ruff arrange the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(READY)   ## renew requirements.lock (hashes, no addresses)
	$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install --quiet uv
	$(VENV)/lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url --output-file requirements.lock
	printf 'hatchling>=1.27\n' >$(VENV)/build.in
	$(VENV)/lock/bin/uv pip compile pyproject.toml $(VENV)/build.in --constraint requirements.lock --universal \
	  --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url \
	  --output-file deploy/requirements.lock

clean:           ## remove the environment and the embedded stack's data
	rm -rf $(VENV) .citeloop
