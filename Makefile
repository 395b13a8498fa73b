# Every target makes the virtual environment and installs what it needs by itself; the second time it is quick.
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS := infra/constraints.txt
# Where it is set, FIRST_PYTHON is tried before the others. Without ensurepip no virtual environment can be made.
FIND_PYTHON = for p in $(FIRST_PYTHON) python3 python3.13 python3.12 python3.11; do \
	if $$p -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then echo $$p; exit; fi; done
PYTHON ?= $(shell $(FIND_PYTHON))
ARGS ?=
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# The home folder of a service that whoever runs the tests has is none of theirs.
PYTEST = env -u BALLAST_HOME $(THREADS) $(BIN)/pytest --numprocesses $(JOBS) --dist loadfile
JOBS ?= 3
N ?= 2000
SEEDS ?= 1000
FAULTS ?= 200
DATABASE ?= sqlite

# Every process of the service imports Prefect or MLflow: without compiled files that takes two to three times as long.
unexport PYTHONDONTWRITEBYTECODE
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export MLFLOW_DISABLE_TELEMETRY := true

.PHONY: demo test thorough check lint mutants soak chaos coverage package bundle licences audit oracle bench screenshots clean help install
help:
	@echo "make demo   a whole service on this machine: plants, training, promotion, a diagnosis (ARGS=--exit stops it at the end)"
	@echo "make test   the tests, on real SQLite, PostgreSQL, NATS, MLflow and Prefect, three at a time, which mostly wait (JOBS=0: one process)"
	@echo "make thorough  the tests that repeat at length what others hold in brief: further kills, losses, norms (tests/thorough.py)"
	@echo "make check  lint, and the tests of what was changed, but for those that need a server"
	@echo "make lint   ruff, mypy and the import contracts"
	@echo "make mutants   plant named mistakes one at a time; the tests must notice each (ARGS=\"--only WORD\")"
	@echo "make soak   whole works on simulated time, network and disks, SEEDS=1000 of them (FROM=0: the first); faults by the million"
	@echo "make chaos  FAULTS=200 on real processes (kill, stop, full disk, locked store, false frames), SEED=1, DATABASE=sqlite|postgresql"
	@echo "make coverage  all tests, the thorough ones too, and the share of lines that they run; fails below the floor in pyproject.toml"
	@echo "make package   the wheel and the source archive, into dist/"
	@echo "make bundle    all wheels, digests, licences and a bill of materials, to install without a network, into dist/"
	@echo "make licences  every dependency with its licence; fails for one that is not allowed"
	@echo "make audit     known weaknesses of the pinned dependencies (asks pip-audit's database)"
	@echo "make oracle holds every certificate to the definition, on N=2000 drawn problems (SEED=17: that one alone)"
	@echo "make bench  the measurements of tests/benchmarks"
	@echo "make screenshots  pictures of every page of the console of a running demo, into .ballast/screenshots"
	@echo "make clean  remove the virtual environment, caches and the demo's files"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Ballast needs Python 3.11, 3.12 or 3.13 with its module venv (on Debian and Ubuntu: apt install python3-venv); none was found. Name one: make PYTHON=/path/to/python3.12 ..."; exit 1; }
	@echo "Making the virtual environment with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

# The pip that comes with a Python may be years old and takes twice as long to choose among the releases; it does where no other can be had.
NEWER_PIP := $(BIN)/pip install --quiet --disable-pip-version-check --upgrade -c $(CONSTRAINTS) pip >/dev/null 2>&1 || true
# pip compiles one file after another, which takes as long as all the rest: here each core has its share.
INSTALL := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c $(CONSTRAINTS)
WITHOUT_WARNING := { grep -v "^WARNING: Location" || true; }
# The packages' own tests nobody runs. A file that this Python cannot read (another version's syntax in a package) is left as it is.
COMPILE := $(BIN)/python -m compileall -q -j 0 -x 'site-packages/.*/tests?/' $(VENV)/lib >/dev/null || true

define INSTALL_EXTRAS
	@$(NEWER_PIP)
	@$(INSTALL) -e '.[$(EXTRAS)]' 2>&1 | $(WITHOUT_WARNING)
	@$(COMPILE)
	@$(BIN)/python -c "import $(IMPORTS)"
endef

$(VENV)/server.stamp: EXTRAS = server,embedded
$(VENV)/server.stamp: IMPORTS = fastapi, mlflow, nats, prefect
$(VENV)/server.stamp: $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@echo "Installing the server (once; some minutes)"
	$(INSTALL_EXTRAS)
	@touch $@

# The server is a part of it: to choose among the releases once takes half as long as twice.
$(VENV)/dev.stamp: EXTRAS = server,embedded,dev
$(VENV)/dev.stamp: IMPORTS = cvxpy, fastapi, hypothesis, mlflow, nats, prefect, pytest, sklearn
$(VENV)/dev.stamp: $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@echo "Installing the server and what the tests need (once; some minutes)"
	$(INSTALL_EXTRAS)
	@touch $(VENV)/server.stamp $@

install: $(VENV)/dev.stamp

demo: $(VENV)/server.stamp
	@$(BIN)/ballast demo $(ARGS)

# Of a part that is asked for nothing is left out.
test: $(VENV)/dev.stamp
	@$(PYTEST) $(if $(strip $(ARGS)),$(ARGS),-m "not thorough")

thorough: $(VENV)/dev.stamp
	@$(PYTEST) -m thorough $(ARGS)

check: lint
	@$(PYTEST) -q -m "not server and not thorough" $$($(BIN)/python -m tests.changed) $(ARGS)

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

mutants: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.mutants --jobs $(JOBS) $(ARGS)

soak: $(VENV)/dev.stamp
	@$(THREADS) $(BIN)/python -m tests.simulation --seeds $(SEEDS) --jobs $(JOBS) $(if $(FROM),--from $(FROM)) $(ARGS)

chaos: $(VENV)/dev.stamp
	@$(THREADS) $(BIN)/python -m tests.chaos --faults $(FAULTS) --seed $(or $(SEED),1) --database $(DATABASE) $(ARGS)

coverage: $(VENV)/dev.stamp
	@$(PYTEST) --cov --cov-report=term -q $(ARGS)

package: $(VENV)/dev.stamp
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/pytest -q tests/packaging

bundle: $(VENV)/dev.stamp
	@$(BIN)/python infra/bundle/build.py $(ARGS)

licences: $(VENV)/dev.stamp
	@$(BIN)/python infra/bundle/installed.py

audit: $(BIN)/python
	@$(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	@$(VENV)/audit/bin/pip-audit --requirement $(CONSTRAINTS) --no-deps --disable-pip $(ARGS)

oracle: $(VENV)/dev.stamp
	@$(THREADS) $(BIN)/python -m tests.oracles --n $(N) $(if $(SEED),--seed $(SEED)) $(ARGS)

screenshots: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

bench: $(VENV)/dev.stamp
	@$(THREADS) $(BIN)/python -m tests.benchmarks $(ARGS)

clean:
	rm -rf $(VENV) .ballast .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
