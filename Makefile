# Two commands do everything: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SHELL := /bin/bash

.PHONY: help demo test check lint types contracts install model bench coverage release \
  editors-tools vsix clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

install: $(STAMP) ## Create .venv with pinned dependencies

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "codekv needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip==25.3"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  --group tests --group lint -e .
	touch $@

model: $(STAMP) ## Pull the default model if it is missing
	$(BIN)/codekv model pull

demo: model ## Watch a real model complete a real file, keystroke by keystroke
	$(BIN)/python -m bench.demo

test: check model ## Run every test
	$(BIN)/codekv model pull smollm2-135m
	$(BIN)/python -m pytest

check: lint types contracts ## Lint, types and import contracts

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

contracts: $(STAMP)
	$(BIN)/lint-imports

bench: model ## Measure this machine; writes out/bench.json and out/bench.html
	mkdir -p out
	$(BIN)/codekv bench bench/samples --json out/bench.json --html out/bench.html

coverage: $(STAMP) ## Which lines the tests reach, without models and editors; out/coverage/
	$(BIN)/python -m pytest -m "not model and not editor and not gpu" --cov --cov-report=term \
	  --cov-report=html:out/coverage

release: $(STAMP) vsix ## The files of a release, with their sums, in dist/
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	cp editors/vscode/codekv.vsix dist/codekv-$$($(BIN)/python -c 'import codekv; print(codekv.__version__)').vsix
	cd dist && sha256sum * > SHA256SUMS

clean: ## Remove what was made here; models and caches stay
	rm -rf $(VENV) .tools out .mypy_cache .ruff_cache .pytest_cache

-include editors/editors.mk
