# The two commands of the README: `make run` and `make test`. Each sets itself up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(wildcard src/tagwire/kernel/*.py src/tagwire/kernel/*.pxd)
READY := $(VENV)/.ready

# make run BOOTSTRAP=host:9092 TOPIC=t OUT=dir lands a topic of your own broker.
BOOTSTRAP ?=
TOPIC ?=
OUT ?= out
HEADERS ?=
WHAT ?= all
PYTEST ?=
# tests/conftest.py says what goes to one process together; the slow ones first.
# Four on two cores: much of the time a test waits, for Java, a disk or a time limit.
PROCESSES := -n 4 --dist loadgroup --no-loadscope-reorder

# The longest files first. Two processes: half of the time one waits for Java, and each has brokers and Spark of its own.
INTEROP := -n 2 --dist loadfile --no-loadscope-reorder $(patsubst %,tests/interop/test_%.py, \
	exactly_once newcomers spark_connector published_clients audit spark_cluster) tests/interop

# What depends on the kernels. Building them, and comparing both kinds of them, is done once.
ON_KERNELS := tests/kernel tests/codec tests/records tests/rpc tests/capture \
	--ignore tests/kernel/test_building.py --ignore tests/kernel/test_differential.py

.PHONY: run test lint interop nightly bench docs stubs wheel setup clean

run: setup
	$(BIN)/tagwire land $(if $(TOPIC),"$(TOPIC)") --to "$(OUT)" $(if $(BOOTSTRAP),--bootstrap "$(BOOTSTRAP)") \
		$(if $(HEADERS),--headers "$(HEADERS)")

# The whole suite runs on the compiled kernels; what depends on them runs again on the same source uncompiled.
test: setup
	$(BIN)/python -m pytest -q -m "not long" $(PROCESSES) tests/spark tests $(PYTEST)
	TAGWIRE_PURE=1 $(BIN)/python -m pytest -q -m "not long" $(PROCESSES) $(ON_KERNELS) $(PYTEST)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/import_cycles.py

# Compares with Kafka's published jars, fetched with Maven and kept under .cache/; what cannot be fetched is NOT RUN.
interop: setup
	$(BIN)/python scripts/rebuild_releases.py --check
	$(BIN)/python -m pytest -q --timeout 600 -n 2 --dist loadgroup -m long tests $(PYTEST)
	$(BIN)/python -m pytest -q --timeout 600 $(INTEROP) $(PYTEST)

# What takes longer than that: half an hour of a broker under load that is killed again and again.
nightly: interop
	$(BIN)/python tests/interop/soak.py --minutes 30

# The peers that benches compare with are installed for them alone.
bench: setup
	$(BIN)/python -m pip install -q --disable-pip-version-check -r bench/requirements.txt
	$(BIN)/python bench/run.py $(WHAT)

# The site, into build/docs. What it is made with is installed for it alone, under .cache/.
docs: setup
	@$(BIN)/python website/make_site.py

stubs: setup
	$(BIN)/python -m tagwire.codec.stubs src/tagwire

# Needs a compiler, and neither Java nor what the tests need.
wheel:
	@PYTHON="$(PYTHON)" bash scripts/prerequisites.sh --no-java
	@"$(PYTHON)" scripts/build_wheel.py

setup: $(READY)

# Packages and kernels, as far as they are not up to date; a set-up that was interrupted goes on.
$(READY): pyproject.toml setup.py constraints.txt scripts/prerequisites.sh scripts/set_up.py $(KERNELS)
	@PYTHON="$(PYTHON)" bash scripts/prerequisites.sh
	@"$(PYTHON)" scripts/set_up.py $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) build dist out src/*.egg-info
	find src -name '*.so' -delete
