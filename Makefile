# Needs only make and Python 3.11 or newer; everything else is made here.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready
RIVALS_VENV  = $(VENV)/rivals
RIVALS_READY = $(RIVALS_VENV)/.ready

# The tests start hundreds of processes: what Python compiled is kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test journeys bench lint check format lock clean

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
	@$(BIN)/python -m pytest -m journey --numprocesses 3 --dist worksteal $(ARGS)

bench: $(READY) $(if $(RIVALS),$(RIVALS_READY))  ## load and figures: SCENARIO=six RUNS=3 QUICK=1 RIVALS=1
	@$(BIN)/python -m bench $(SCENARIO) --runs $(or $(RUNS),1) $(if $(QUICK),--quick) $(if $(RIVALS),--rivals $(if $(filter 1,$(RIVALS)),all,$(RIVALS))) $(ARGS)

$(RIVALS_READY): bench/rivals.lock
	@command -v redis-server >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	  then apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server; \
	  else echo "Celery needs Redis: install redis-server (Debian: sudo apt-get install redis-server), or leave Celery out: RIVALS=asyncio,asyncio-sqlite,dbos" >&2; \
	  case ",$(RIVALS)," in *,1,*|*,celery,*) exit 1;; esac; fi
	$(PYTHON) -m venv $(RIVALS_VENV)
	$(RIVALS_VENV)/bin/python -m pip install --quiet --require-hashes --no-deps -r bench/rivals.lock
	@touch $@

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
	$(VENV)/lock/bin/uv pip compile bench/rivals.in --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url --output-file bench/rivals.lock

clean:           ## remove the environment and the embedded stack's data
	rm -rf $(VENV) .citeloop
