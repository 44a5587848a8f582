# Everything runs in .venv, which is made from requirements.lock the first time it is needed.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
OUT := datasets_out
SAMPLES := cuad contractnli maud privacyqa cpr
JOBS ?= 2

.PHONY: demo test test-all test-scale check lint lock schemas pictures bench mutants scale clean help

help:                     ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/ready       ## convert the samples, check them, test the pipeline on them, write a report
	@for name in $(SAMPLES); do \
	  $(PY) -m converters.$$name --source samples/$$name --out $(OUT)/$$name --force || exit 1; echo; done
	$(PY) -m schemas.validate $(SAMPLES:%=$(OUT)/%)
	$(PY) -m evidence.check $(SAMPLES:%=$(OUT)/%)
	$(PY) -m evidence.show $(OUT)/cuad 33 --out $(OUT)/gold-on-the-page.png
	@rm -rf results/demo
	$(PY) evaluate_rag.py --dataset-paths $(SAMPLES:%=$(OUT)/%) --file-type pdf --run-name demo
	@echo; echo "done; open results/demo/report.html (the report) and $(OUT)/gold-on-the-page.png (gold on its page)"

test: $(VENV)/ready       ## the default suite: loopback only, under two minutes
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m "not slow and not extra and not server"

test-all: $(VENV)/extras  ## the slow tests too, those of the extras, and those that measure on real data
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m "not server"

test-scale: $(VENV)/extras ## real servers, killed and restarted: Milvus (x86-64), S3, Google Cloud Storage; ten minutes
	$(PY) -m pytest -m server

check: lint test          ## everything: style, types, generated files, tests

lint: $(VENV)/ready       ## style, types, generated files
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m schemas.generate --check

bench: $(VENV)/ready      ## measured comparisons, as ratios in one run
	$(PY) -m bench.locate
	$(PY) -m bench.convert
	$(PY) -m bench.search
	$(PY) -m bench.score
	$(PY) -m bench.targets
	$(PY) -m bench.ocr

mutants: $(VENV)/ready    ## change the code in small places and list what no test notices: under 30 minutes
	$(PY) -m bench.mutants --jobs $(JOBS)

scale: $(VENV)/extras     ## measure cost as work grows and write docs/scale.md: twelve minutes on two free cores
	$(PY) -m bench.scale

schemas: $(VENV)/ready    ## write schemas/json anew from the models
	$(PY) -m schemas.generate

lock: $(VENV)/ready       ## resolve requirements.lock anew from pyproject.toml
	$(PY) -m pip install -q uv
	$(PY) -m uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url -q -o requirements.lock
	$(PY) -m uv pip compile pyproject.toml --extra dev --extra ocr --extra bench --extra ray --extra milvus \
	  --extra s3 --extra gs --extra test --universal --python-version 3.11 --upgrade --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url -q -o extras.lock

pictures: demo            ## draw the README's pictures anew
	$(PY) -m docs.pictures

clean:                    ## remove what was built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/extras: requirements.lock models.lock extras.lock
	@$(PYTHON) install.py $(VENV) --extras
	@touch $(VENV)/ready $@

$(VENV)/ready: requirements.lock models.lock
	@$(PYTHON) install.py $(VENV)
	@touch $@
