PYTHON ?= python3
V := .venv/bin/python
.PHONY: run test lint bench chaos lock

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
	$(V) bench/run.py $(ARGS)

chaos: .venv/.dev.stamp
	CHAOS_SEEDS=25 CHAOS_KILLS=1000 CHAOS_ROUNDS=100 $(V) -m pytest tests/chaos

lock:
	$(PYTHON) packaging/lock.py

.venv/.%.stamp: requirements/%.txt packaging/setup_env.py
	@$(PYTHON) packaging/setup_env.py $*
