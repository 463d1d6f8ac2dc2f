# make demo   compares five models on two sets and writes demo/report.html
# make test   formatting, lints, types, imports, tests
# make test-all   adds the slow tests: every table on stand-in data, a hundred kills, two processes
# make coverage   how much of the library the tests of `make test` run; fails below the floor
# make sanitize   runs the C code under address, undefined-behaviour and thread sanitizers (gcc, Linux)
# make docs   builds the site into build/site
# make links   asks every address on the site whether it answers; needs a network
# make mutate   plants errors one after the other and says which of them the tests find
# make fuzz   fuzzes the readers of files and the calls of the C library (clang, or gcc), SECONDS each;
#   then compiles PROGRAMS random steps and compares each with its loop
# make aarch64   builds the C code for aarch64 and runs its exercise in an emulator (qemu-user, Linux)
# Those that need Python make their own .venv; PYTHON chooses another interpreter (3.11 or newer).

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo docs links test test-all coverage sanitize mutate fuzz aarch64 lint clean

CSRC := CMakeLists.txt $(wildcard src/anharmonic/ops/csrc/*)

$(READY): pyproject.toml papers/pyproject.toml constraints.txt $(CSRC)
	@echo "Making .venv and installing PyTorch and the package; this takes a minute or two."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade-strategy only-if-needed -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,graph,ode,sweep,onnx,dev]'
	$(BIN)/python -m pip install --quiet -c constraints.txt -e papers
	touch $(READY)

# What the demo needs alone, compiled for this machine alone: a third of the time.
SMALL := $(if $(wildcard $(READY)),$(READY),.venv/small)

.venv/small: pyproject.toml constraints.txt $(CSRC)
	@echo "Making .venv and installing PyTorch and the package; this takes about a minute."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --upgrade-strategy only-if-needed -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt --config-settings=cmake.define.AN_HOST_ONLY=ON '.[train]'
	touch $@

demo: $(SMALL)
	$(BIN)/python examples/minutes/demo.py

# -W: a warning is an error. Needs no network.
docs: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -c docs -W --keep-going -q . build/site
	@echo "The site is in build/site; open build/site/index.html."

links: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b linkcheck -c docs -D plot_gallery=0 -q . build/links

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror src/anharmonic/ops/csrc/*.[ch] src/anharmonic/export/runtime/*.[ch]
	$(BIN)/mypy
	$(BIN)/lint-imports

# What Python and the C compiler make of sources that did not change is kept in build/.
# Threads that wait sleep, as two processes share the cores.
FAST := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/python \
  ANHARMONIC_COMPILED=$(CURDIR)/build/steps $(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not slow'

test: lint
	$(FAST)

test-all: lint
	$(BIN)/python -m pytest -q

coverage: $(READY)
	$(FAST) --cov --cov-report=term:skip-covered

sanitize: $(READY)
	$(BIN)/python tests/sanitize.py

mutate: $(READY)
	$(BIN)/python tests/mutate/run.py map
	$(BIN)/python tests/mutate/run.py

SECONDS ?= 600
PROGRAMS ?= 2000

fuzz: $(READY)
	$(BIN)/python tests/fuzz/readers.py $(SECONDS)
	$(BIN)/python tests/fuzz/calls.py $(SECONDS)
	ANHARMONIC_PROGRAMS=$(PROGRAMS) $(BIN)/python -m pytest -q -s tests/ops/compiler/test_programs.py

aarch64:
	bash tests/aarch64.sh

clean:
	rm -rf .venv build dist demo runs
