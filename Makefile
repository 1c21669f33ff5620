PYTHON ?= python3
V := .venv/bin/python
.PHONY: run test lint bench lock

run: .venv/.app.stamp
	@./cronmend

test: .venv/.dev.stamp
	$(V) -m pytest

lint: .venv/.dev.stamp
	$(V) -m ruff check .
	$(V) -m ruff format --check .
	$(V) -m mypy
	.venv/bin/lint-imports

bench: .venv/.app.stamp
	$(V) bench/run.py

lock:
	$(PYTHON) packaging/lock.py

.venv/.%.stamp: requirements/%.txt packaging/setup_env.py
	@$(PYTHON) packaging/setup_env.py $*
