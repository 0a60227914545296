# Every target says what it does: `make help`.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
CARGO  ?= cargo
export PYO3_PYTHON := $(CURDIR)/$(PY)

.DEFAULT_GOAL := help
.PHONY: help dev install wheel test test-rust test-python check fmt lint gen gen-check bench demo clean

help:  ## Explain every target
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  \1|/' | column -t -s '|'

# The environment is remade only when the list of packages changes.
$(VENV)/.stamp: requirements/dev.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	touch $@

dev: $(VENV)/.stamp  ## Debug build into .venv, with numpy and pytest
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin develop --quiet

wheel: $(VENV)/.stamp  ## Release wheel into dist/
	rm -rf dist
	$(VENV)/bin/maturin build --profile dist --interpreter $(PY) --out dist

install: wheel  ## Release wheel into .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl

gen: $(VENV)/.stamp  ## Regenerate the code that comes from crates/ops/yaml
	$(PY) -m tools.opgen

gen-check: $(VENV)/.stamp  ## Fail if the generated code is not that of the YAML
	$(PY) -m tools.opgen --check

fmt:  ## Format Rust and Python
	$(CARGO) fmt --all
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix-only --quiet .

lint: $(VENV)/.stamp  ## Formats, clippy, ruff, mypy on the stubs
	$(CARGO) fmt --all --check
	$(VENV)/bin/ruff check .
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(VENV)/bin/mypy --config-file pyproject.toml --follow-imports=silent python/ptr/_C.pyi

test-rust: $(VENV)/.stamp  ## Every Rust test
	$(CARGO) test --workspace --locked --exclude ptr-python

test-python: dev  ## Every Python test, with a debug build
	$(PY) -m pytest tests

test: test-rust test-python  ## Every test, Rust and Python; does all its own set-up

check: gen-check lint test  ## What CI runs: generated code, format, lints, stubs, completeness, tests

bench: install  ## Benchmarks of this repository (benchmarks/README.md)
	$(PY) -m benchmarks

demo: install  ## Train a small network on real handwritten digits with the release wheel
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/demo.txt
	$(PY) examples/train_digits.py

clean:  ## Remove build outputs
	rm -rf dist target out
