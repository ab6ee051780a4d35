# make run      the main chapter, one scenario, on embedded data: out.ipynb, and out.html to look at
# make test     everything that must hold: lint, the book without a warning, all tests
# make nightly  the same with every notebook at its usual size, through the book and through nbval,
#               100,000 hostile inputs, and a workflow that is killed on the way
# make anywhere the book as other processors compute it: no page fails, no verdict differs
# make book     the book alone: book/_build/html/index.html
# make pdf      the book as one file to print: book.pdf (needs Chromium; CHROME=... names another)
# make archive  book and stored results in one zip, with the SHA-256 of every file in SHA256SUMS
# make browser  the built pages in Chromium, checked for accessibility by axe-core (needs npm)
# make report   every scenario, data set and seed that is configured, then the book
# make clean    what these made, but not the environment
#
# Python 3.11 or newer: the python3 that is there, or PYTHON=... Without a GPU, install PyTorch's
# build for CPUs first (TORCH_INDEX=..., see README): it is a tenth of the size.
PYTHON ?= python3
VENV ?= .venv
SCENARIO ?= sigmoid
CORES ?= 2
TORCH_INDEX ?=

BIN := $(abspath $(VENV))/bin
STAMP := $(VENV)/.installed
# Only PyTorch brings packages that requirements.txt does not name: those for its accelerator.
TORCH = $(if $(TORCH_INDEX),--no-deps --index-url $(TORCH_INDEX) $$(grep -E '^torch(vision)?==' \
  requirements.txt),-c requirements.txt torch torchvision)
# Trainings of tests are over before a process for them has imported PyTorch, unless one asks for it.
QUIET := OMP_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1
SMOKE := PROBNB_SMOKE=1 $(QUIET)

# Python keeps the modules that it has compiled, whatever the shell says. Without, every kernel and
# worker compiles PyTorch anew: half of what a small notebook costs.
export PYTHONDONTWRITEBYTECODE :=

BUILT := book/_build/html/index.html

.PHONY: run test anywhere nightly book pdf archive browser report workflow install clean

# papermill's own bar counts cells, not the work in them: the trainings' bar is shown instead.
run: $(STAMP)
	PROBNB_PROGRESS=text $(BIN)/papermill book/synthetic.ipynb out.ipynb -p scenario $(SCENARIO) \
	  --no-progress-bar --log-output --log-level WARNING
	$(BIN)/python -m probnb_book publish page out.ipynb

# The book executes every notebook, here at the size of a test, in a store and a build folder of their
# own (_smoke); what fails or warns ends it. That nbval does too is seen by one of them. A file's
# tests go to one process, so that what they share is made once.
test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(SMOKE) $(BIN)/pytest -q --nbval-lax --nbval-current-env book/evaluate.ipynb
	$(SMOKE) $(BIN)/jupyter-book build book/ -W --keep-going --all --path-output _smoke
	$(QUIET) $(BIN)/pytest -rs -n $(CORES) --dist loadfile

# Every page at its usual size as other processors compute it; fails on an error, or on a verdict
# that differs. MACHINES="..." names others: see book/probnb_book/anywhere.py.
anywhere: $(STAMP)
	$(BIN)/python -m probnb_book anywhere $(MACHINES)

nightly: $(STAMP) workflow
	$(MAKE) anywhere MACHINES='"SSE4.1" AVX2 AVX-512 AMX bf16 "this one, two threads" "this one"'
	$(BIN)/jupyter-book build book/ -W --keep-going --all
	$(BIN)/pytest --nbval-lax --nbval-current-env book/
	$(QUIET) PROBNB_FUZZ=100000 PROBNB_KILLS=3 $(BIN)/pytest -rs -n $(CORES)

book: $(STAMP)
	$(BIN)/jupyter-book build book/

$(BUILT):
	$(MAKE) book

pdf: $(BUILT)
	$(BIN)/python -m probnb_book publish pdf

archive: $(BUILT)
	$(BIN)/python -m probnb_book publish archive

browser: $(BUILT)
	npm install --no-save --silent --prefix $(VENV)/axe axe-core@4.14.1
	PROBNB_AXE=$(VENV)/axe/node_modules/axe-core/axe.min.js $(BIN)/pytest -rs tests/test_pages.py

report: $(STAMP) workflow
	$(BIN)/../workflow/bin/snakemake -c $(CORES) --rerun-incomplete --nolock \
	  --config python=$(BIN)/python
	$(BIN)/jupyter-book build book/

# Snakemake in an environment of its own: it holds back packages that the book needs newer.
workflow: $(VENV)/workflow/.installed

$(VENV)/workflow/.installed: workflow/requirements.txt | $(STAMP)
	$(PYTHON) -m venv $(VENV)/workflow
	$(VENV)/workflow/bin/python -m pip install -r $<
	touch $@

install: $(STAMP)

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo \
	  "probnb needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	# Bytecode of what is never imported is not made: Python makes the rest at its first import.
	$(BIN)/python -m pip install --no-compile $(TORCH)
	$(BIN)/python -m pip install --no-compile --no-deps -r requirements.txt -e .
	touch $@

clean:
	rm -rf book/_build _smoke book.pdf probnb-*.zip out.ipynb out.html report.ipynb report.html
