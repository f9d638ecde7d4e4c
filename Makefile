# Targets for people. What must hold before a change goes in is .ci/run.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
FUZZTIME ?= 30s
# Empty: the one of paidonce.yaml, else the one that `make db` runs here.
DATABASE_URL ?= $(PAIDONCE_DATABASE_URL)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/paidonce, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.release=$(VERSION)' -o bin/paidonce ./cmd/paidonce

.PHONY: test
test: ## Run all tests with the race detector
	$(GO) test -race ./...

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (30s)
	PAIDONCE_CI_FUZZTIME=$(FUZZTIME) .ci/run fuzz

.PHONY: lint
lint: ## Check form and rules (.golangci.yaml), and go vet
	$(GO) vet ./...
	.ci/run lint

.PHONY: fmt
fmt: ## Format the code and order its imports
	$$(.ci/tool golangci-lint) fmt

.PHONY: db
db: ## Start a private Postgres, with the whole program on it
	$(GO) run ./cmd/paidonce dev

.PHONY: migrate
migrate: ## Bring that database, or DATABASE_URL, to the current schema
	PAIDONCE_DATABASE_URL='$(DATABASE_URL)' $(GO) run ./cmd/paidonce migrate

.PHONY: verify
verify: ## Check that generated files, golden files and go.mod are current
	.ci/run generated
	$(GO) test ./docs ./gateway ./internal/config ./internal/explain ./internal/manual ./order

.PHONY: ci
ci: ## Everything that must hold before a change goes in
	.ci/run
