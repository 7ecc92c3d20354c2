# Needs only Python 3.11 or newer, make and git: the first run makes .venv, later runs take seconds.

.DEFAULT_GOAL := help
.PHONY: help run web test test-servers test-chaos mutants check bench bench-growth generate format clean

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
RUN_STAMP := .venv/.installed-to-run
comma := ,
WORKFLOW ?= workflows/order_fulfillment
ARGS ?=
# Many tests wait for processes and leases, so there are three times as many testers as cores.
RUNNER = $(BIN)/pytest
PYTEST = $(RUNNER) -n $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) * 3 ))) --dist worksteal
# All tests that are left to `make test-servers` are here (tests/conftest.py sees to that): the others are not collected.
SERVED = -o testpaths="$(addprefix tests/,contract integration acceptance docs web)"
# Tests start hundreds of processes; compiling every module in each of them takes longer than the tests.
export PYTHONDONTWRITEBYTECODE =

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

run: $(RUN_STAMP)  ## run an example workflow on the database that Tasker brings along (WORKFLOW=..., ARGS=...)
	@$(BIN)/tasker run $(WORKFLOW) $(ARGS)

web: $(RUN_STAMP)  ## a page with example tasks running on the database that Tasker brings along (ARGS="--port 8080")
	@$(BIN)/python -m tools.feed $(ARGS)

test: check  ## run every check and the tests but the longest (ARGS=... for pytest)
	@$(PYTEST) $(ARGS)

test-servers: $(STAMP)  ## run what `make test` leaves out: the other tests on a second version of PostgreSQL and on each broker, and the longer ones that kill processes
	@$(PYTEST) -m "servers and not long" $(SERVED) $(ARGS)

test-chaos: $(STAMP)  ## kill processes and the database under hundreds of tasks (at most 20 minutes; TASKER_CHAOS_SEED, TASKER_CHAOS_TASKS)
	@began=$$(date +%s); failed=0; \
	$(call bounded,900) $(BIN)/pytest -s --timeout 600 -m "long or not long" tests/chaos $(ARGS) || { $(over); }; \
	$(call bounded,$$((began + 1140 - $$(date +%s)))) $(BIN)/pytest -n 2 -m long tests/acceptance $(ARGS) || { $(over); }; \
	exit $$failed

mutants: $(STAMP)  ## break the code on purpose and see that the tests notice (ARGS=tests/mutants/... for some)
	@$(BIN)/python -m tools.mutants $(ARGS)

check: $(STAMP)  ## lint, formatting, types, import layers, secrets in files, known vulnerabilities of what is installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@MYPY_NUM_WORKERS=2 $(BIN)/mypy || { test $$? = 2 && echo "mypy again, without workers: on a busy machine they may start too late" && $(BIN)/mypy; }
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.audit

bench: $(STAMP)  ## measure latency, throughput, fleets and recovery (ARGS=--quick, --only NAME)
	@$(BIN)/python -m tests.benchmarks $(ARGS)

bench-growth: $(STAMP)  ## measure what grows with the size of tasks, templates and databases (ARGS=--only NAME)
	@$(BIN)/python -m tests.benchmarks.growth $(ARGS)

generate: $(STAMP)  ## write the SQL and the parts of the documentation that are made from the tables of the code
	@$(BIN)/python -m tools.lifecycle_sql
	@$(BIN)/python -m tools.sql_readme
	@$(BIN)/python -m tools.lifecycle_docs
	@$(BIN)/python -m tools.step_docs
	@$(BIN)/python -m tools.openapi
	@$(BIN)/python -m tools.monitoring
	@$(BIN)/tasker config docs --output docs/reference/configuration.md

format: $(STAMP)  ## format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## remove the environment, caches and the embedded database of this folder
	rm -rf .venv .tasker .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist

# As Ctrl-C after so many seconds, so that what tests have started is stopped; unbounded where there is no `timeout`.
bounded = $(if $(shell command -v timeout),timeout --signal INT --kill-after 30 $(1))

# What `timeout` says of it; a part that was cut off is a failure, and not one of a test.
over = test $$? != 124 || echo 'TIME IS OVER: tests that are not counted above were not run (some of them: ARGS="-k NAME")' >&2; failed=1

# A new environment unless .venv works; installed again when pyproject.toml changes. What `make run` needs is half of it.
ifeq ($(strip $(PYTHON)),)
define install
	@echo "Tasker needs Python 3.11 or newer with the venv module, and found none." >&2
	@echo "Install one (Debian and Ubuntu: apt install python3 python3-venv), or name it: make PYTHON=/path/to/python" >&2
	@exit 1
endef
else
define install
	@$(BIN)/python -c '' 2>/dev/null || { echo "making .venv with $(PYTHON)"; $(PYTHON) -m venv --clear .venv; }
	@$(BIN)/python tools/install.py $(1)
endef
endif

$(RUN_STAMP): pyproject.toml
	$(call install,embedded$(comma)web)
	@touch $@

$(STAMP): pyproject.toml
	$(call install,embedded$(comma)web$(comma)dev)
	@touch $(RUN_STAMP) $@
