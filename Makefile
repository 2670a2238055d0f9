# Everything a person does with this repository. `make help` lists it.
# Needs Python 3.11+ and make; the rest is installed into .venv by the first command that needs it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.7
WORKERS ?= 2

# Some containers set it. The tests start hundreds of processes, and each would compile everything that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run serve test test-all check words format bench facts simulate docs dist release lock clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/ready  ## install everything into .venv, and find Java for Spark
	@$(BIN)/python tools/java.py

run: setup  ## the main job: auctions matched on a local Spark; artifacts/run/index.html shows what came of it
	@$(BIN)/tamis pipeline

serve: $(VENV)/ready  ## a broker on this machine with a live feed of auctions; it prints three commands to try
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/tamis serve --demo --data artifacts/serve

test: setup  ## the tests, in minutes; of one package: make test P=language
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m "not slow" $(if $(P),$(wildcard tests/$(P) src/tamis/$(P) src/$(P)))

test-all: setup  ## the slow tests, too, on new random examples, and a tenth of the long series; all: make test-all SLOW_SHARE=1
	SLOW_SHARE=$(SLOW_SHARE) TAMIS_HYPOTHESIS=$${TAMIS_HYPOTHESIS:-exploring} $(BIN)/pytest -n $(WORKERS) --dist loadgroup

check: words  ## format, lint, types, spelling, and words that are not used
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

words: $(VENV)/ready  ## spelling, and the words that are not used (tools/words.txt)
	@$(BIN)/codespell *.md docs src benchmarks tools
	@$(BIN)/python tools/words.py

format: $(VENV)/ready  ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/ready  ## the benchmarks: a table, and artifacts/benchmarks/*.json
	$(BIN)/python -m benchmarks

facts: $(VENV)/ready  ## facts about the code: longest function, imports, modules; JUNIT=results.xml adds the tests' time
	@$(BIN)/python tools/facts.py $(if $(JUNIT),--junit $(JUNIT))

simulate: $(VENV)/ready  ## a network of brokers again: make simulate SEED=42
	$(BIN)/python -m tamis.simulation $${SEED:-0}

docs: $(VENV)/ready  ## the documentation as a site under site/, once every block and command in it is seen to be run
	@$(BIN)/pytest -q -p no:cacheprovider -m "not slow" tests/test_blocks.py tests/test_docs.py tests/test_pages.py tests/test_how_to.py \
	  tests/test_tutorials.py README.md docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: $(VENV)/ready  ## wheel and source archive under dist/, and a look at what is in them
	rm -rf dist
	$(BIN)/uv build --quiet --python $(BIN)/python --out-dir dist
	@$(BIN)/python tools/distribution.py dist

release: $(VENV)/ready  ## a dry run of a release: tree, version, changelog, checks, all tests, archives; uploads nothing
	@$(BIN)/python tools/release.py
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test-all
	@$(MAKE) --no-print-directory dist
	@$(BIN)/python tools/release.py --next

lock: $(VENV)/ready  ## pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile pyproject.toml --extra spark --extra nats --extra data --extra lab --extra service --extra jwt --extra otel --group dev --universal --upgrade \
	  --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --output-file requirements.lock --quiet

clean:  ## remove everything that was made here
	rm -rf $(VENV) artifacts site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/ready: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tamis needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || { echo "Making the virtual environment .venv ..."; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@echo "Installing the locked dependencies (PySpark is large: a minute or two) ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@
