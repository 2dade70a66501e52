SHELL := bash
.DEFAULT_GOAL := help
export CGO_ENABLED := 0

LABCTL := bin/labctl
GOFLAGS_BUILD := -trimpath -buildvcs=false -ldflags '-s -w'

.PHONY: help build up down status plan test e2e lint

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/labctl and bin/labnode
	go build $(GOFLAGS_BUILD) -o bin/ ./cmd/...

up: build ## bring up the cluster of cluster.yaml, whatever state it is in
	$(LABCTL) up

down: build ## remove everything that the lab made
	$(LABCTL) down

status: build ## show machines, nodes and etcd members
	$(LABCTL) status

plan: build ## print what up would do
	$(LABCTL) plan
