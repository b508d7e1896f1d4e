# `make` lists the targets. Each one sets up what it needs: the first creates .venv and installs into it.

TASK = ner
SCALE = mini
SEEDS = 1
N =
ARGS =
PYTHON = python3 python3.13 python3.12 python3.11 python
TORCH = $(shell grep '^torch==' constraints.txt)

# DATA_ROOT reaches the commands through the environment, whatever characters are in it; empty means none.
ifeq ($(DATA_ROOT),)
unexport DATA_ROOT
endif

RUN = .venv/bin/python
# A .venv that is a link belongs to another checkout: it is used as it is, and nothing is installed into it.
READY = $(if $(shell test -L .venv && echo link),.venv/linked,.venv/ready)

.PHONY: help setup data reproduce table figure report pretrain bench test drill lint format clean-cache .venv/linked .venv/own
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

help: ## list the targets and their variables
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile
	@printf '%s\n' '' 'Variables, here with their defaults:' \
	  '  TASK=$(TASK)      $(patsubst tasks/%/reader.py,%,$(wildcard tasks/*/reader.py)); for data and reproduce also all' \
	  '  SCALE=$(SCALE)    mini (generated here, offline), open (real text: make data fetches it) or paper' \
	  '  SEEDS=$(SEEDS)       how many seeds reproduce runs' \
	  '  N=            the number of the table or figure' \
	  '  ARGS=         further overrides or options, as ARGS="trainer=gpu elmo.dropout=0.2" or ARGS="-k mix" (test)' \
	  '  PYTHON=       the first of these from 3.11 to 3.13: $(PYTHON)' \
	  '  TORCH=        what to install as torch: $(TORCH)'

setup: $(READY) ## create .venv with all that the other targets need
	@echo ".venv is ready$$(test ! -L .venv || echo ": a link to $$(readlink .venv), used as it is")"

data: SCALE = open
data: $(READY) ## fetch the data of SCALE (here open, or paper) for TASK or all into DATA_ROOT (by default data/)
	@$(RUN) -m elmo_bench.data 'scale=$(SCALE)' 'task=$(TASK)' $(ARGS)

reproduce: $(READY) ## Table 1 for TASK: baseline and +ELMo over SEEDS, beside the paper's
	@$(RUN) -m elmo_bench.reproduce 'task=$(TASK)' 'scale=$(SCALE)' 'seeds=$(SEEDS)' $(ARGS)

table: $(READY) ## table N of the paper for TASK, as one sweep
	@$(call sweep,table)

figure: $(READY) ## figure N of the paper for TASK, as one sweep; N=senses: senses by layer of the biLM
	@$(if $(filter senses,$(N)),$(RUN) -m elmo_bench.analysis.senses 'scale=$(SCALE)' $(ARGS),$(call sweep,figure))

report: $(READY) ## write results/README.md and results/report.html from the records
	@$(RUN) -m elmo_bench.report $(ARGS)

pretrain: $(READY) ## train the biLM of SCALE on plain text; resumes where it stopped
	@$(RUN) -m elmo_bench.pretrain 'scale=$(SCALE)' $(ARGS)

bench: $(READY) ## measure the biLM's speed against this machine's best matrix product
	@$(RUN) -m elmo_bench.bench $(ARGS)

test: $(READY) ## run the whole test suite
	@$(RUN) -m pytest -n auto --dist worksteal $(ARGS)

drill: $(READY) ## half an hour of kills, damaged files, mutated input; goes on where it stopped (ARGS=--help)
	@$(RUN) -m tests.drill $(ARGS)

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

clean-cache: ## remove generated data, trained mini biLMs and word vectors, and cached activations
	@cd "$${ELMO_BENCH_CACHE:-.cache}" 2>/dev/null || exit 0; \
	for part in activations mini vectors; do if [ -d $$part ]; then du -sh "$$PWD/$$part" && rm -rf $$part; fi; done

# One table or figure is one file under conf/sweep/.
define sweep
if [ ! -f 'conf/sweep/$(1)$(N).yaml' ]; then \
  echo "make $(1) N=$(N): no such sweep; there are: $$(cd conf/sweep && echo *.yaml | sed 's/\.yaml//g')" >&2; exit 2; \
fi; \
$(RUN) -m elmo_bench.train '+sweep=$(1)$(N)' 'task=$(TASK)' 'scale=$(SCALE)' $(ARGS)
endef

# torch goes first and by itself, so that TORCH can name any build of it; the pins hold for all else.
.venv/ready: pyproject.toml constraints.txt | .venv/own
	@.ci/setup '$(TORCH)' $(PYTHON)

# A .venv that is installed for another place (a checkout that was copied or moved) would run that place's code.
.venv/own:
	@cat .venv/lib/python3*/site-packages/*elmo_bench.pth 2>/dev/null | while IFS= read -r place || [ -n "$$place" ]; do \
	  [ "$$place" -ef . ] && continue; \
	  echo ".venv belongs to the checkout $$place; remove it (rm -rf .venv), then make sets up one of its own" >&2; exit 2; \
	done

.venv/linked:
	@[ -x .venv/bin/python ] || { echo ".venv is a link to $$(readlink .venv), where there is no Python; remove it" >&2; exit 2; }
