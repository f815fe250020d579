# The habits of the house. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help up test check format bench docs clean

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# DEMO=0 leaves an empty database empty.
DEMO   ?= 1
# Passed on to pytest, as in: make test ARGS="tests/unit -k cron"
ARGS   ?=

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(VENV)/.service ## Run all of it: migrate, import, then web, scheduler and worker (DEMO=0: no demo)
	@exec $(BIN)/bellringer up $(if $(filter 0,$(DEMO)),--no-demo,--demo)

test: $(VENV)/.test ## Run all tests (SQLite always; PostgreSQL and MariaDB where they answer)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

check: $(VENV)/.check ## Format, lint, types, floors, migrations; quick enough for each commit
	$(BIN)/ruff format --check app bellringer alembic benchmarks tests
	$(BIN)/ruff check app bellringer alembic benchmarks tests
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@rm -rf $(VENV)/migrations && mkdir -p $(VENV)/migrations
	BELLRINGER_DATABASE_URL=sqlite:///$(VENV)/migrations/check.db $(BIN)/alembic upgrade head
	BELLRINGER_DATABASE_URL=sqlite:///$(VENV)/migrations/check.db $(BIN)/alembic check

format: $(VENV)/.check ## Put the code into shape
	$(BIN)/ruff check --fix app bellringer alembic benchmarks tests
	$(BIN)/ruff format app bellringer alembic benchmarks tests

bench: $(VENV)/.bench ## Measure each figure against a baseline in the same run
	$(BIN)/python -m benchmarks

docs: $(VENV)/.test ## Hold the documentation against the code
	$(BIN)/python -m pytest -q tests/docs

clean: ## Remove what was made, but no data
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per set of extras; `pip` itself decides what is missing.
$(VENV)/.service: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@
