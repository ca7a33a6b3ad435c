# Two commands do everything on a fresh machine: make demo, make test.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
# Pinned here and run from the module proxy, so that go.mod stays the product's.
GOLANGCI := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help
help: ## Show this list.
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/setpoint and bin/setpoint-lab.
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/setpoint ./cmd/setpoint-lab

.PHONY: demo
demo: build ## See the product work: three services, three faults, under four minutes. ARGS="--json --yes".
	@bin/setpoint-lab demo $(ARGS)

.PHONY: tools
tools: # The real servers that the tests run against.
	@deploy/test-servers.sh

.PHONY: test
test: tools ## Run every test but the long suites.
	@# One package more than processors: some wait for real servers most of their time.
	$(GO) test -p $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) -timeout 9m ./...

.PHONY: race
race: tools ## Run the tests with the race detector.
	$(GO) test -race -timeout 20m ./...

.PHONY: lint
lint: ## gofmt, go vet and golangci-lint.
	@test -z "$$(gofmt -l cmd internal policies prompts)" || { gofmt -l cmd internal policies prompts; echo 'run gofmt -w on these'; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags crashtest ./cmd/setpoint
	$(GOLANGCI) run

.PHONY: policy
policy: build ## Check and test the shipped policy.
	bin/setpoint policy check policies
	bin/setpoint policy test policies

.PHONY: eval
eval: build ## Run evals and incidents in simulated time with scripted proposers.
	@bin/setpoint-lab eval run --suite evals $(ARGS)
	@bin/setpoint-lab eval run --suite evals/incidents

.PHONY: worst
worst: build ## Play the most harmful proposers for 28 simulated days against the bound.
	@bin/setpoint-lab worst $(ARGS)

.PHONY: mutants
mutants: tools build ## Break each promise alone and print which test notices. ARGS="--only no-fsync".
	@bin/setpoint-lab mutants $(ARGS)

.PHONY: fuzz
fuzz: ## Fuzz every parser for FUZZTIME (default 30s) each.
	@for f in $$(grep -rl --include=*_test.go 'func Fuzz' internal cmd | xargs -n1 dirname | sort -u); do \
	  for t in $$(grep -ho 'func Fuzz[A-Za-z0-9_]*' $$f/*_test.go | sed 's/func //'); do \
	    echo "== ./$$f $$t"; $(GO) test ./$$f -run '^$$' -fuzz "^$$t$$" -fuzztime $${FUZZTIME:-30s} || exit 1; done; done

.PHONY: crash
crash: tools ## Prove one effect per key: real agents hit everywhere, simulation, mutants; one table.
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -tags crashtest -o bin/setpoint-crashtest ./cmd/setpoint
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/setpoint-lab
	@bin/setpoint-lab crash $(if $(ARGS),$(ARGS),--all --parallel 16)

.PHONY: crash-click
crash-click: ## Kill agents from a click in Slack to its effect; play many seeds of what people know. ARGS, SEEDS.
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -tags crashtest -o bin/setpoint-crashtest ./cmd/setpoint
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/setpoint-lab
	SETPOINT_PEOPLE_SEEDS=$${SEEDS:-200} $(GO) test -count=1 -timeout 20m ./internal/lab/people
	@bin/setpoint-lab crash --only click --prove-clicks --parallel 10 $(ARGS)

.PHONY: bench
bench: ## Print the ratios of Setpoint's cost to the bare work.
	$(GO) test -timeout 30m -run '^$$' -bench . -benchtime 500ms ./internal/...

.PHONY: generate
generate: ## Write the generated schemas and golden files.
	$(GO) generate ./...

.PHONY: vuln
vuln: ## Look for known vulnerabilities that the code reaches.
	@out=$$($(GOVULNCHECK) ./... 2>&1); rc=$$?; echo "$$out"; \
	if [ $$rc -ne 0 ] && grep -qE 'fetching vulnerabilities|dial tcp|no such host|[Ff]orbidden|connection refused' <<<"$$out"; then \
	  echo 'govulncheck could not reach its database, so nothing was checked. This is no all-clear.'; exit 0; fi; exit $$rc

.PHONY: check
check: lint test policy ## What a pull request must pass.
