# Set-up, tests and demo. `make` alone lists the targets.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# A machine that reports CI must not pass by skipping the simulator.
NGSPICE_MODE := $(if $(CI),required,auto)

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-slow test-checked lint format docs notebooks bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "PYTHON=python3.12 chooses the interpreter. For the small CPU-only build of torch instead of the"
	@echo "CUDA build, set PIP_EXTRA_INDEX_URL to the PyTorch project's CPU wheel index before make venv."

venv: $(STAMP) ## .venv with every extra from requirements.lock, and libngspice
	@scripts/ensure_ngspice.sh

$(STAMP): requirements.lock pyproject.toml scripts/hatch_build.py
	@scripts/make_venv.sh $(PYTHON) $(VENV)
	@echo "installing requirements.lock into $(VENV), several minutes the first time"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

demo: venv ## the whole chain on a small network; results under runs/demo
	$(BIN)/cosim demo -o runs/demo

test: venv ## the test suite
	$(BIN)/python -m pytest -n $(JOBS) --ngspice=$(NGSPICE_MODE) --benchmark-disable $(PYTEST_ARGS)

test-slow: venv ## the long sweeps
	$(BIN)/python -m pytest -n $(JOBS) --ngspice=$(NGSPICE_MODE) --benchmark-disable -m slow --timeout=3600 $(PYTEST_ARGS)

test-checked: venv ## nightly: the test suite with the bounds of every access of the batched engine checked
	COSIM_CHECKED=1 $(BIN)/python -m pytest -n $(JOBS) --ngspice=$(NGSPICE_MODE) --benchmark-disable --timeout=3600 $(PYTEST_ARGS)

lint: venv ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: venv ## let ruff rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: venv ## the manual, in site/: open site/index.html
	$(BIN)/python scripts/build_manual.py

notebooks: venv ## execute every notebook, results in runs/notebooks
	$(BIN)/python scripts/run_notebooks.py notebooks runs/notebooks

bench: venv ## the speed measurements in benchmarks/
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

lock: venv ## pin what is installed in .venv
	$(BIN)/python scripts/write_lock.py requirements.lock

clean: ## remove what was built; keeps .venv and runs
	rm -rf build dist site .pytest_cache .ruff_cache .benchmarks
	find cosim tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
