# Everything the project does from a fresh clone. Environments are built from the hashed locks in requirements/
# and rebuilt only when a lock or pyproject.toml changes (the stamp files remember).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PYTEST_ARGS ?=
BENCH_ARGS ?=
SOAK_ARGS ?=

VENV := .venv
BENCH_VENV := .venv-bench
BIN := $(VENV)/bin

# Locked installs: only what the lock names, only files whose hash it holds. -qq keeps errors and drops the rest.
INSTALL := -m pip install -qq --disable-pip-version-check --require-hashes -r
# The project itself: its build backend is in every lock, so nothing is fetched here.
INSTALL_PROJECT := -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .

# Where it is set, each of the many processes that tests start would compile the project's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-docker test-docker-all browser bench soak lock clean

help:
	@echo "make setup   build $(VENV) with what the service and the demo need"
	@echo "make demo    train and serve a small model from end to end"
	@echo "make check   ruff, mypy and the import contracts"
	@echo "make test    check, then pytest (PYTEST_ARGS='-k name' narrows it)"
	@echo "make test-docker  a cluster by docker compose: same model, a kill, isolation (needs Docker only)"
	@echo "make test-docker-all  the same, and every fault of tests/docker/test_all.py (half an hour)"
	@echo "make browser  install Debian's Chromium for the tests of the web pages, if it is missing (needs root)"
	@echo "make bench   time the engine against its peers, in $(BENCH_VENV) (BENCH_ARGS go to the program)"
	@echo "make soak    ten minutes of random kills while jobs run, every model checked (SOAK_ARGS='--minutes 2')"
	@echo "make lock    write requirements/*.txt again from pyproject.toml (LOCK_ARGS=--upgrade for newer versions)"
	@echo "make clean   remove environments, caches and build leftovers"

# --- environments ------------------------------------------------------------------------------------------

$(BIN)/python:
	@echo "==> $(VENV): new environment from $(PYTHON)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.setup-stamp: requirements/demo.txt pyproject.toml | $(BIN)/python
	@echo "==> $(VENV): service and demo, from requirements/demo.txt"
	@$(BIN)/python $(INSTALL) requirements/demo.txt
	@$(BIN)/python $(INSTALL_PROJECT)
	@touch $@

# A dev environment holds the set-up one, so its recipe settles both stamps.
$(VENV)/.dev-stamp: requirements/dev.txt requirements/demo.txt pyproject.toml | $(BIN)/python
	@echo "==> $(VENV): service, demo and developer tools, from requirements/dev.txt"
	@$(BIN)/python $(INSTALL) requirements/dev.txt
	@$(BIN)/python $(INSTALL_PROJECT)
	@touch $(VENV)/.setup-stamp $@

# Peers live apart: their versions must not bend the project's own.
$(BENCH_VENV)/.bench-stamp: requirements/benchmarks.txt pyproject.toml
	@echo "==> $(BENCH_VENV): service and its peers, from requirements/benchmarks.txt"
	@$(PYTHON) -m venv $(BENCH_VENV)
	@$(BENCH_VENV)/bin/python $(INSTALL) requirements/benchmarks.txt
	@$(BENCH_VENV)/bin/python $(INSTALL_PROJECT)
	@touch $@

setup: $(VENV)/.setup-stamp
	@echo "==> $(VENV) is ready"

# --- what people run ---------------------------------------------------------------------------------------

demo: setup
	@$(BIN)/python -m demo

check: $(VENV)/.dev-stamp
	@echo "==> ruff check"
	@$(BIN)/ruff check --quiet .
	@echo "==> ruff format"
	@$(BIN)/ruff format --check --quiet . || { echo "files above are not formatted: $(BIN)/ruff format ."; exit 1; }
	@echo "==> mypy"
	@$(BIN)/mypy
	@echo "==> import contracts"
	@$(BIN)/lint-imports --no-cache --no-logo

PROCESSES := tests/service tests/workers tests/parity tests/faults
# The engine's tests compute and those of the service and its workers start processes: either share the cores, each with
# its own kind. Some of these have the machine for themselves (marked `alone`). Where PYTEST_ARGS narrow the choice, any
# of the three may have nothing to do.
NONE_CHOSEN = { status=$$?; [ -n '$(PYTEST_ARGS)' ] && [ $$status -eq 5 ]; }
SHARED := -n auto --dist loadfile -m 'not docker and not alone'

test: check
	@echo "==> pytest: the engine, on all cores"
	@$(BIN)/python -m pytest $(SHARED) $(addprefix --ignore ,$(PROCESSES)) $(PYTEST_ARGS) || $(NONE_CHOSEN)
	@echo "==> pytest: service, workers, parity and faults, on all cores"
	@$(BIN)/python -m pytest $(SHARED) $(PROCESSES) $(PYTEST_ARGS) || $(NONE_CHOSEN)
	@echo "==> pytest: deadlines, and whole processes that die"
	@$(BIN)/python -m pytest -m 'not docker and alone' $(PROCESSES) $(PYTEST_ARGS) || $(NONE_CHOSEN)

test-docker: $(VENV)/.dev-stamp
	@echo "==> pytest: a cluster by docker compose"
	@$(BIN)/python -m pytest tests/docker -m 'docker and not docker_all' $(PYTEST_ARGS)

test-docker-all: $(VENV)/.dev-stamp
	@echo "==> pytest: a cluster by docker compose, and all its faults"
	@$(BIN)/python -m pytest tests/docker -m docker $(PYTEST_ARGS)

# Without it the tests of the web pages are skipped by name.
browser:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "Chromium is missing, and only root can install it: apt-get install chromium chromium-driver"; exit 0; fi; \
	echo "==> Chromium and its driver from Debian's packages"; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq -y --no-install-recommends chromium chromium-driver >/dev/null

bench: $(BENCH_VENV)/.bench-stamp
	@$(BENCH_VENV)/bin/python -m benchmarks $(BENCH_ARGS)

soak: $(VENV)/.dev-stamp
	@$(BIN)/python -m benchmarks.soak $(SOAK_ARGS)

# --- locks -------------------------------------------------------------------------------------------------

# One resolution for all: dev.txt first, the others constrained by it, so that a package has one version
# everywhere. --build-deps-for brings the build backend, which installing the project needs. Hashes are of every
# file of a release, so a lock serves each platform; no index or machine address may enter a committed file.
LOCK_ARGS ?=
PIP_COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/python -m piptools compile --quiet --generate-hashes \
	--strip-extras --allow-unsafe --build-deps-for editable --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --no-emit-options $(LOCK_ARGS)

lock: $(VENV)/.dev-stamp
	@echo "==> requirements/dev.txt"
	@$(PIP_COMPILE) --extra demo --extra dev -o requirements/dev.txt pyproject.toml
	@echo "==> requirements/demo.txt"
	@$(PIP_COMPILE) --extra demo -c requirements/dev.txt -o requirements/demo.txt pyproject.toml
	@echo "==> requirements/runtime.txt"
	@$(PIP_COMPILE) -c requirements/dev.txt -o requirements/runtime.txt pyproject.toml
	@echo "==> requirements/benchmarks.txt"
	@$(PIP_COMPILE) --extra benchmarks -c requirements/dev.txt -o requirements/benchmarks.txt pyproject.toml
	@! grep -nE '://|^-' requirements/*.txt || { echo "an address or option got into a lock"; exit 1; }

clean:
	@rm -rf $(VENV) $(BENCH_VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
