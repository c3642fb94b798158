# SPDX-License-Identifier: Apache-2.0
# make test    the quick tests on the newest supported Python found (or PYTHON_VERSION=3.11), set-up included: minutes
# make test-all    everything, for every supported Python found (3.11, 3.12, 3.13): under an hour
# make test-compilers    tests inside XLA's compilers for GPU and TPU; no hardware, 2 GB of packages for each of Python 3.11 and 3.12
# make test-jax VERSION=0.11.1    a short form of the tests with that release; VERSION=all: with each, into docs/compatibility.md
# make test-python314    the quick tests with Python 3.14, in a root of Debian's; needs root and debootstrap
# make test-aarch64    a short form for Linux on aarch64, emulated by QEMU; needs root, debootstrap and a cross compiler
# make test-gpu    all that needs a GPU, and a table of what it saw; says so where there is none
# make demo    the example, in an environment of its own
# make docs    the documentation site, into build/site; fails on a dead link
# make lint    format, style, types and clang-tidy; make format repairs what can be repaired
# make bench   the benchmarks, into docs/performance.md (BENCH=--short: in a minute or two); make asan: the tests under sanitizers
# make hostile modules that are big and badly shaped; make fuzz: the fuzzers, TIME=600 seconds in all
# make wheel   the source distribution and manylinux wheels, into dist/, tried without a compiler
# make clean   removes all that was built
SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

python_sources := $(shell find python -type f -not -name '*.pyc')
sources := CMakeLists.txt pyproject.toml $(python_sources) \
  $(shell find cpp -name '*.cpp' -o -name '*.h' -o -name '*.def' -o -name CMakeLists.txt)

# The environment for work that is done once: of the newest Python found.
newest := $(shell for v in 3.13 3.12 3.11; do bash tools/find_python.sh $$v >/dev/null && echo $$v && break; done)
newest_venv := .venv/$(or $(newest),none)

.PHONY: help test test-all test-compilers test-jax test-python314 test-aarch64 test-gpu demo docs lint format bench asan hostile fuzz wheel clean
.SECONDARY:

help:
	@sed -n 's/^# make/make/p' Makefile

export PYTHON_VERSION
test:
	@bash tools/test.sh

test-all:
	@bash tools/test_all.sh

test-compilers:
	@bash tools/test_compilers.sh

test-jax:
	@bash tools/test_jax.sh $(VERSION)

test-python314:
	@bash tools/test_python314.sh

test-aarch64:
	@bash tools/test_aarch64.sh

test-gpu:
	@bash tools/test_gpu.sh

demo: .venv/demo/.installed
	.venv/demo/bin/python examples/train_step.py

# With mlir-opt's row where it is installed.
bench: $(newest_venv)/.installed
	@PATH="$(CURDIR)/$(newest_venv)/bin:$$PATH" bash tools/mlir_opt.sh build || echo "no plugin for mlir-opt: its row is left out" >&2
	$(newest_venv)/bin/python benchmarks/record.py $(BENCH)

docs: $(newest_venv)/.docs-deps
	@$(newest_venv)/bin/zensical build --config-file mkdocs.yml --clean --strict
	@$(newest_venv)/bin/python tools/old_addresses.py

wheel_venvs := $(shell for v in 3.11 3.12; do bash tools/find_python.sh $$v >/dev/null && echo .venv/$$v; done)
wheel: $(wheel_venvs:%=%/.wheel-deps)
	@bash tools/make_wheel.sh $(wheel_venvs)

hostile: $(newest_venv)/.installed
	$(newest_venv)/bin/python fuzz/hostile.py

TIME ?= 600
fuzz: $(newest_venv)/.installed
	@test -x /usr/lib/llvm-22/bin/clang++ || \
	  { echo "hlotag: make fuzz needs clang-22 and libclang-rt-22-dev; tools/get_packages.sh clang installs them" >&2; exit 1; }
	@PATH="$(CURDIR)/$(newest_venv)/bin:$$PATH" $(newest_venv)/bin/python fuzz/run.py $(TIME)

lint: $(newest_venv)/.lint-deps
	@PATH="$(CURDIR)/$(newest_venv)/bin:$$PATH" bash tools/lint.sh

format: $(newest_venv)/.lint-deps
	@PATH="$(CURDIR)/$(newest_venv)/bin:$$PATH" bash tools/lint.sh --fix

asan: $(newest_venv)/.installed
	@mkdir -p build
	@PATH="$(CURDIR)/$(newest_venv)/bin:$$PATH" bash tools/sanitize.sh

clean:
	rm -rf .venv build dist out .pytest_cache .ruff_cache

# Environments. The stamp files make a second run quick.
.venv/none/%:
	@echo "hlotag: needs Python 3.11, 3.12 or 3.13, and none was found" >&2; exit 1

.venv/demo/.deps: pyproject.toml tools/make_venv.sh tools/requirements.py
	@test -n "$(newest)" || \
	  { echo "hlotag: make demo needs Python 3.11, 3.12 or 3.13, and none was found; on Debian: apt-get install python3-venv" >&2; exit 1; }
	bash tools/make_venv.sh "$$(bash tools/find_python.sh $(newest))" .venv/demo build run
	@touch $@

.venv/%/.deps: pyproject.toml tools/make_venv.sh tools/requirements.py tools/constraints-%.txt
	bash tools/make_venv.sh "$$(bash tools/find_python.sh $*)" .venv/$* build run test examples
	@touch $@

.venv/%/.wheel-deps: .venv/%/.deps
	bash tools/make_venv.sh "$$(bash tools/find_python.sh $*)" .venv/$* wheel
	@touch $@

.venv/%/.lint-deps: .venv/%/.installed
	bash tools/make_venv.sh "$$(bash tools/find_python.sh $*)" .venv/$* dev
	@touch $@

.venv/%/.docs-deps: .venv/%/.installed
	bash tools/make_venv.sh "$$(bash tools/find_python.sh $*)" .venv/$* docs
	@touch $@

.venv/%/.installed: .venv/%/.deps $(sources)
	PATH="$(CURDIR)/.venv/$*/bin:$$PATH" .venv/$*/bin/python -m pip install --quiet --no-build-isolation --no-deps \
	  --force-reinstall .
	@touch $@
