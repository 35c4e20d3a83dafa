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
# make simulate MINUTES=10: new seeds, or those from SEED on; SIMULATE has more options of `python -m tests.simulation`.
MINUTES ?= 10
SEED ?=
SIMULATE ?=
# tests/scheduling.py says what goes to one process together, and what begins first: the longest.
# Four on two cores: much of the time a test waits, for Java, a disk or a time limit.
PROCESSES := -n 4 --dist loadscope --no-loadscope-reorder

# Two processes: half of the time one waits for Java, and each has brokers and Spark of its own. With more, workers of Spark
# do not come within its ten seconds.
INTEROP := -n 2 --dist loadscope --no-loadscope-reorder tests/interop

# What depends on the kernels. Building them, and comparing both kinds of them, is done once.
ON_KERNELS := tests/kernel tests/codec tests/records tests/rpc tests/capture \
	--ignore tests/kernel/test_building.py --ignore tests/kernel/test_differential.py

.PHONY: run test lint interop simulate simulate-coverage nightly bench docs stubs wheel setup clean

run: setup
	$(BIN)/tagwire land $(if $(TOPIC),"$(TOPIC)") --to "$(OUT)" $(if $(BOOTSTRAP),--bootstrap "$(BOOTSTRAP)") \
		$(if $(HEADERS),--headers "$(HEADERS)")

# The whole suite runs on the compiled kernels; what depends on them runs again on the same source uncompiled.
test: setup
	$(BIN)/python scripts/run_tests.py -q -m "not long and not nightly" $(PROCESSES) tests $(PYTEST) \
		--uncompiled -q -m "not long and not nightly" $(ON_KERNELS) $(PYTEST)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/import_cycles.py

# Compares with Kafka's published jars, fetched with Maven and kept under .cache/; what cannot be fetched is NOT RUN.
interop: setup
	$(BIN)/python scripts/rebuild_releases.py --check
	$(BIN)/python scripts/run_tests.py -q --timeout 600 -n 2 --dist loadscope --no-loadscope-reorder -m "long and not nightly" tests $(PYTEST)
	$(BIN)/python scripts/run_tests.py -q --timeout 600 -m "not nightly" $(INTEROP) $(PYTEST)

# Client and broker in simulated worlds, on all processors; ends with status 1 at the first seed that shows something.
simulate: setup
	PYTHONPATH=src $(BIN)/python -m tests.simulation --minutes $(MINUTES) $(if $(SEED),--from $(SEED)) $(SIMULATE)

# coverage.py is installed for it alone.
simulate-coverage: setup
	PYTHONPATH=src $(BIN)/python -m tests.simulation.coverage --missed

# What takes longer than that: the tests of that name, an hour of new seeds, and half an hour of a broker under load that is
# killed again and again.
nightly: interop
	$(BIN)/python -m pytest -q --timeout 1800 -n 2 --dist loadscope --no-loadscope-reorder -m nightly tests $(PYTEST)
	$(BIN)/python -m pytest -q --timeout 1800 -m nightly $(INTEROP) $(PYTEST)
	$(BIN)/python -m tests.simulation.thread_stress --seconds 120
	$(BIN)/python -m tests.simulation.planted --minutes 60
	$(MAKE) simulate MINUTES=60
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
