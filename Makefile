# make run    the main chapter, one scenario, on embedded data: out.ipynb
# make test   everything that must hold: lint, the book without a warning, notebooks, tests
# make book   the book alone: book/_build/html/index.html
# make clean  what these made, but not the environment
PYTHON ?= python3.11
VENV ?= .venv
SCENARIO ?= sigmoid

BIN := $(abspath $(VENV))/bin
STAMP := $(VENV)/.installed

.PHONY: run test book install clean

run: $(STAMP)
	$(BIN)/papermill book/synthetic.ipynb out.ipynb -p scenario $(SCENARIO)

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/jupyter-book build book/ -W --keep-going --all
	$(BIN)/pytest --nbval-lax --nbval-current-env book/
	$(BIN)/pytest

book: $(STAMP)
	$(BIN)/jupyter-book build book/

install: $(STAMP)

$(STAMP): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -r requirements.txt
	$(BIN)/python -m pip install --no-deps -e .
	touch $@

clean:
	rm -rf book/_build out.ipynb report.ipynb
