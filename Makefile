# make run      the main chapter, one scenario, on embedded data: out.ipynb
# make test     everything that must hold: lint, the book without a warning, notebooks, tests
# make nightly  the same with every notebook at its usual size, and 100,000 hostile inputs
# make book     the book alone: book/_build/html/index.html
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
QUIET := OMP_NUM_THREADS=1

.PHONY: run test nightly book report install clean

# papermill's own bar counts cells, not the work in them: the trainings' bar is shown instead.
run: $(STAMP)
	PROBNB_PROGRESS=text $(BIN)/papermill book/synthetic.ipynb out.ipynb -p scenario $(SCENARIO) \
	  --no-progress-bar --log-output --log-level WARNING

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PROBNB_SMOKE=1 $(BIN)/jupyter-book build book/ -W --keep-going --all
	$(BIN)/pytest --nbval-lax --nbval-current-env book/synthetic.ipynb
	$(QUIET) $(BIN)/pytest -n $(CORES)

nightly: $(STAMP)
	$(BIN)/jupyter-book build book/ -W --keep-going --all
	$(BIN)/pytest --nbval-lax --nbval-current-env book/
	$(QUIET) PROBNB_FUZZ=100000 $(BIN)/pytest -n $(CORES)

book: $(STAMP)
	$(BIN)/jupyter-book build book/

report: $(STAMP)
	$(BIN)/snakemake -s workflow/Snakefile -c $(CORES)
	$(BIN)/jupyter-book build book/

install: $(STAMP)

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo \
	  "probnb needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --index-url $(TORCH_INDEX) $$(grep -E '^torch(vision)?==' requirements.txt))
	$(BIN)/python -m pip install -r requirements.txt
	$(BIN)/python -m pip install --no-deps -e .
	touch $@

clean:
	rm -rf book/_build out.ipynb report.ipynb
