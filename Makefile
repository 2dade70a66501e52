SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export CGO_ENABLED := 0

LABCTL := bin/labctl
PACKED := cmd/labctl/labnode
GOFLAGS_BUILD := -trimpath -buildvcs=false
# Of labnode, which travels: without gRPC's traces, which have templates in them, the linker leaves out 20 MB of methods that nobody calls.
SMALL := -tags grpcnotrace
LDFLAGS := -s -w

# Which labctl it is: the same commit gives the same binary. Outside of a git checkout they are empty, and labctl says unknown.
VERSION = $(shell git describe --tags --dirty 2>/dev/null)
DATE = $(shell git log -1 --format=%cI 2>/dev/null)

# How many inputs each fuzz target tries.
# Not a time: Go 1.26 calls a target failed when its time ends at a bad moment (golang.org/issue/75804, mended in 1.27).
FUZZRUNS ?= 20000

# What e2e runs: LABELS is a filter of its specs' labels, E2E_SEED repeats the random moments of an earlier run. ci are those of the gate, which must end
# in time on a slow computer too; wide are those beside it that are neither faults of the nightly nor need another computer.
LABELS ?= ci
E2E_TIMEOUT ?= 40m
RESULTS := e2e/results

# What nightly runs: wide, containers, vms, onboard, hosts, foreign, versions, or all. Each part may take PART_TIMEOUT: a slow computer needs more. HISTORY is the file of
# its earlier runs, by default in the state directory.
PART ?= all
PART_TIMEOUT ?= 118m
HISTORY ?=
COMMIT ?= $(shell git describe --always --dirty --exclude '*' 2>/dev/null)

# The linter is built once from source, outside go.mod, whose dependencies are the product's.
GOLANGCI_VERSION := v2.7.1
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/k8slab/tools
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint

# The gate's own programs: ./... leaves out directories whose names begin with a dot.
CHECKS := ./.ci/loops ./.ci/summary

.PHONY: help build up down status diagnose box plan deps test arm64 fuzz e2e joins nightly part-wide part-containers part-vms part-onboard part-hosts part-foreign part-versions lint

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/labctl, which has labnode in it, and bin/labnode; also that of nodes of arm64
	GOARCH=amd64 go build $(GOFLAGS_BUILD) $(SMALL) -ldflags '$(LDFLAGS)' -o bin/labnode ./cmd/labnode # without the commit: it is a part of the node image
	GOARCH=arm64 go build $(GOFLAGS_BUILD) $(SMALL) -ldflags '$(LDFLAGS)' -o bin/labnode-arm64 ./cmd/labnode
	@for suffix in '' -arm64; do \
		gzip -dc $(PACKED)$$suffix.gz 2>/dev/null | cmp -s - bin/labnode$$suffix || gzip -nc bin/labnode$$suffix >$(PACKED)$$suffix.gz; \
	done
	go build $(GOFLAGS_BUILD) -tags labnode -ldflags '$(LDFLAGS) -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)' -o bin/ ./cmd/labctl

up: build ## bring up the cluster of cluster.yaml, whatever state it is in
	$(LABCTL) up

down: build ## remove everything that the lab made, and what killed end-to-end specs left
	$(LABCTL) down
	@e2e/down.sh

status: build ## show machines, nodes and etcd members
	$(LABCTL) status

diagnose: build ## say what is wrong with the cluster, why, and what to do
	$(LABCTL) diagnose

box: build ## make vagrant's box of the node image: for the Vagrantfile
	$(LABCTL) vagrant box

plan: build ## print what up would do
	$(LABCTL) plan

deps: build ## install the Debian packages that labs and their tests need (as root)
	@if [ "$$(id -u)" = 0 ]; then \
		$(LABCTL) host install; \
		{ command -v gcc && command -v bsdtar; } >/dev/null || \
			{ apt-get update; DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends gcc libc6-dev libarchive-tools; }; \
	fi

test: deps ## run the unit tests with the race detector (TESTFLAGS are go test's)
	CGO_ENABLED=1 go test -race -timeout 15m $(TESTFLAGS) ./... $(CHECKS)
	go test $(TESTFLAGS) -run 'EveryChange|EveryCall' ./lab # at every place: the race detector tries some

# It needs a package, and the first build of everything for arm64 takes minutes: not a part of test.
arm64: ## run tests of labnode as arm64 in an emulator (package qemu-user-static)
	GOARCH=arm64 go vet ./lab/join/... ./lab/diagnose/fact ./lab/kernel ./cmd/labnode
	GOARCH=arm64 go test -exec qemu-aarch64-static $(TESTFLAGS) ./lab/join/firewall ./lab/kernel ./cmd/labnode

fuzz: ## run each fuzz target FUZZRUNS times, on inputs that are made at random
	@grep -rl --include='*_test.go' '^func Fuzz' config lab | sort | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' "$$file"); do \
			go test "./$$(dirname "$$file")" -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZRUNS)x </dev/null | sed "s/^/$$target: /" || exit 1; \
		done; \
	done

# With E2E_RACE=1 the specs try a labctl that finds data races. It writes each to a file, which fails the spec.
RACE := bin/labctl-race

$(RACE): build
	CGO_ENABLED=1 go build -race $(GOFLAGS_BUILD) -tags labnode -ldflags '$(LDFLAGS)' -o $@ ./cmd/labctl

e2e: $(if $(E2E_RACE),$(RACE),build) ## run the end-to-end specs labelled LABELS (default ci) on real machines; E2E_RACE=1 finds data races
	mkdir -p $(RESULTS)
	rm -f $(RESULTS)/e2e.json $(RESULTS)/e2e.xml $(RESULTS)/race.*
	$(if $(E2E_RACE),LABCTL=../$(RACE) GORACE=log_path=$(CURDIR)/$(RESULTS)/race) go run github.com/onsi/ginkgo/v2/ginkgo --tags e2e --label-filter '$(LABELS)' --timeout $(E2E_TIMEOUT) \
		--fail-on-empty --fail-on-pending --no-color --poll-progress-after 3m --poll-progress-interval 1m \
		--output-dir $(RESULTS) --json-report e2e.json --junit-report e2e.xml ./e2e

nightly: build ## make every fault on fresh labs, report, compare with earlier runs (PART=wide, containers, vms, onboard, hosts, foreign, versions or all)
	@case '$(PART)' in all|wide|containers|vms|onboard|hosts|foreign|versions) ;; *) echo 'PART=$(PART): use wide, containers, vms, onboard, hosts, foreign, versions or all' >&2; exit 2;; esac; \
	status=0; \
	for part in $(if $(filter all,$(PART)),wide containers vms onboard hosts foreign versions,'$(PART)'); do $(MAKE) --no-print-directory part-$$part || status=1; done; \
	exit $$status

part-wide: LABELS = ci || wide
part-containers: LABELS = nightly && !vms
part-containers: export E2E_URI = lxc:///system
part-vms: LABELS = vms
part-onboard: LABELS = onboard
part-hosts: LABELS = hosts
part-foreign: LABELS = foreign
part-versions: LABELS = versions
part-foreign part-versions: PART_TIMEOUT = 60m
part-wide part-onboard part-foreign part-versions: export E2E_URI = lxc:///system
part-onboard: export E2E_RACE = 1
part-vms part-hosts: DISK = --disk
# The first build of the image, ten minutes, is not of the part's time.
# The report, not the suite's status, says what the night was: it knows the earlier ones.
part-wide part-containers part-vms part-onboard part-hosts part-foreign part-versions:
	$(LABCTL) image build $(DISK)
	rm -f $(RESULTS)/e2e.json $(RESULTS)/e2e.xml # an earlier part's, should this one not begin
	$(MAKE) e2e LABELS='$(LABELS)' E2E_TIMEOUT=$(PART_TIMEOUT) || true
	cp $(RESULTS)/e2e.xml $(RESULTS)/nightly-$(@:part-%=%).xml || true
	go run ./e2e/nightly -part $(@:part-%=%) -results $(RESULTS) -commit '$(COMMIT)' \
		$(if $(HISTORY),-history '$(HISTORY)')

joins: ## join JOINS nodes (default 149) under mixed faults; E2E_SEED repeats or continues a run
	$(MAKE) e2e LABELS=campaign E2E_TIMEOUT=3h JOINS=$(or $(JOINS),149) E2E_SEED=$(or $(E2E_SEED),1)

lint: $(GOLANGCI) ## check format, vet, golangci-lint, go.mod and loops between files (go run ./.ci/loops -print shows them)
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
		[ -z "$$unformatted" ] || { echo "not formatted with gofmt:"; echo "$$unformatted"; exit 1; }
	go vet ./... $(CHECKS)
	go vet -tags e2e ./...
	go run ./.ci/loops
	go mod tidy -diff
	go mod verify
	@touch $(TOOLS) # in use, says this to labctl image prune
	$(GOLANGCI) run ./... $(CHECKS)

$(GOLANGCI):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
