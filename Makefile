# boardlift: `make help` lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
STATE := .boardlift
TOOLCHAIN ?= $(if $(BOARDLIFT_TOOLCHAIN),$(BOARDLIFT_TOOLCHAIN),$(CURDIR)/$(STATE)/toolchain)
PY := $(VENV)/bin/python
OURS := client libs/servicekit services/transform services/compiler services/board_agent services/orchestrator simulator
PACKAGES := client/boardlift libs/servicekit/boardlift_servicekit services/transform/boardlift_transform \
	services/compiler/boardlift_compiler services/board_agent/boardlift_board_agent \
	services/orchestrator/boardlift_orchestrator
export PYTHONDONTWRITEBYTECODE ?= 1

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

sync: $(VENV)/.synced ## Make the Python environment (any Python 3.10 or newer)
	@test "$(MAKECMDGOALS)" != sync || echo "$(PY) is ready, the command is $(VENV)/bin/boardlift. Next: make demo, or make up."
$(VENV)/.synced: requirements/dev.txt $(addsuffix /pyproject.toml,$(OURS))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "boardlift needs Python 3.10 or newer; $(PYTHON) is older. Set PYTHON=/path/to/python3.11"; exit 3; }
	@echo "Making $(VENV) for $$($(PYTHON) --version): some minutes the first time."
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps $(addprefix -e ./,$(OURS))
	@touch $@

toolchain: ## Install the vendor toolchain by pip into .boardlift/toolchain (its own Python 3.10, 570 MB)
	@deploy/toolchain/install.sh $(TOOLCHAIN)

demo: sync ## Bring a robot policy from ONNX to a verdict, with live progress
	@BOARDLIFT_TOOLCHAIN=$(TOOLCHAIN) $(PY) deploy/local/demo.py

up: sync ## Run NATS, all services and one simulated board in this terminal until Ctrl-C
	@BOARDLIFT_TOOLCHAIN=$(TOOLCHAIN) $(PY) deploy/local/stack.py $(if $(PORT),--port $(PORT))

test: sync ## Everything tests need, then all tests
	@if [ "$$BOARDLIFT_WITHOUT_TOOLCHAIN" != 1 ]; then deploy/toolchain/install.sh $(TOOLCHAIN); fi
	BOARDLIFT_TOOLCHAIN=$(TOOLCHAIN) $(PY) -m pytest -n 2 --dist loadgroup $(TESTS)

lint: sync ## Style, types, import arrows, stub freshness, proto lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy $(PACKAGES)
	$(VENV)/bin/lint-imports
	$(MAKE) --no-print-directory gen-check

gen: $(STATE)/gen/.made ## Generate the gRPC stubs from protos/
	$(STATE)/gen/bin/python tools/gen_protos.py
gen-check: $(STATE)/gen/.made
	$(STATE)/gen/bin/python tools/gen_protos.py --check
$(STATE)/gen/.made: requirements/gen.txt
	$(PYTHON) -m venv $(STATE)/gen
	$(STATE)/gen/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/gen.txt
	@touch $@

lock: sync ## Pin all third-party packages with hashes from the pyproject files
	$(PY) -m pip install -q --disable-pip-version-check uv
	$(PY) tools/lock_requirements.py

compose-test: sync ## Build the images and run the demo job in a real Docker Engine
	tests/e2e/containers/run.sh

clean: ## Remove environments and state
	rm -rf $(VENV) $(STATE) .pytest_cache .mypy_cache .ruff_cache

.PHONY: help sync toolchain demo up test lint gen gen-check lock compose-test clean
