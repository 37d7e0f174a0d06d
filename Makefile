# Everything starts here; see README.md. Go 1.26, Node 20.19 or later and make are all that must be there.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
export VERSION # so that recipes name it as the shell's variable: whoever makes a tag must not have it run
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build demo check test soak docs mutations conformance image release bench lint gateway devcluster devissuer devcontrollers devvolcano controlplane portal clean

build: gateway devcluster

# The portal is embedded, so it is built first. It is the program that is released, but for its symbols.
gateway: portal
	@echo building bin/gateway
	@CGO_ENABLED=0 scripts/downloads.sh . go build -trimpath -ldflags "-X main.version=$$VERSION" -o bin/gateway ./cmd/gateway

portal: web/node_modules/.package-lock.json
	@echo building the portal
	@said=$$(npm --prefix web run build --silent 2>&1) || { echo "$$said"; exit 1; }

web/node_modules/.package-lock.json: web/package-lock.json
	@echo fetching what the portal is made of
	@npm --prefix web ci --no-audit --no-fund --loglevel=error

devcluster:
	@echo building bin/devcluster
	@scripts/downloads.sh devcluster go build -C devcluster -o ../bin/devcluster .

# An OpenID provider (Dex), for the tests of the login. About a minute, once.
devissuer:
	@echo building bin/devissuer
	@scripts/downloads.sh devissuer go build -C devissuer -o ../bin/devissuer .

# Kueue's controllers, for the tests of the history: about three minutes on two cores, once.
devcontrollers:
	@echo building bin/devcontrollers
	@scripts/downloads.sh devcontrollers devcontrollers/build.sh bin/devcontrollers

# Volcano's scheduler and controllers, for the test of its queues: about three minutes on two cores, once.
devvolcano:
	@echo building bin/volcano
	@scripts/downloads.sh devvolcano devvolcano/build.sh bin/volcano

# etcd, kube-apiserver and the rest: what is published, if it can be had; else from source, about ten minutes on two cores, once.
controlplane:
	@scripts/downloads.sh devcluster devcluster/build.sh bin/controlplane

demo: build controlplane
	@scripts/demo.sh

# What can be known without a cluster, a database server or a browser: vet, the TypeScript compiler, and the tests that run in process.
check: web/node_modules/.package-lock.json
	@scripts/check.sh

test:
	@scripts/test.sh

# The model tests for long: random faults, clients of every sort, several gateways; over a fake API server in virtual time,
# then over a real one; what is left of clients that left; recorded lives of jobs with restarts and lost watches; 1,000 jobs of which each change has to be recorded; and random lives under real controllers. Each lasts for SOAK=1h, or ten minutes. Each
# seed is named as it begins, and the first that finds something ends it. SEED=n begins with a seed.
soak: build controlplane devcontrollers
	KUBECAST_SOAK=$(or $(SOAK),10m) KUBECAST_SEED=$(SEED) go test -count=1 -timeout 0 -v -run TestClientsEndWithTheClustersState ./internal/http
	KUBECAST_SOAK=$(or $(SOAK),10m) KUBECAST_SEED=$(SEED) go test -count=1 -timeout 0 -v -run 'Alike|IsLost' ./internal/jobs/recordings
	KUBECAST_SOAK=$(or $(SOAK),10m) go test -race -count=1 -timeout 0 -v -run TestRandomFaults ./e2e
	KUBECAST_SOAK=$(or $(SOAK),10m) go test -race -count=1 -timeout 0 -v -run TestNothingIsLeftOfClientsThatLeft ./e2e
	KUBECAST_SOAK=$(or $(SOAK),10m) go test -race -count=1 -timeout 0 -v -run TestEachTransitionIsRecordedOnce ./e2e
	KUBECAST_SOAK=$(or $(SOAK),10m) go test -race -count=1 -timeout 0 -v -run TestLivesAreToldAsTheirPodsLivedThem ./e2e

# Writes the parts of the documents that are made from the code.
docs:
	go test ./internal/app -run TestTheTableOfMetricsIsThatOfTheCode -update
	go run ./scripts/notices >notices.tmp && mv notices.tmp internal/licenses/notices.txt
	go run ./scripts/chartschema >schema.tmp && mv schema.tmp deploy/chart/values.schema.json
	go run -C deploy/grafana . >dashboard.tmp && mv dashboard.tmp deploy/grafana/kubecast.json
	go test -C deploy/charttest -count=1 -run 'Rules|Dashboard' -update
	go test -C deploy/charttest -count=1 -run TestRendering -update

# What the tests would not see: small changes of the packages where users meet. It goes on where an earlier run has ended.
mutations:
	nice go run ./scripts/mutate -seed $(or $(SEED),1) -results mutations.tsv

# Kubernetes' own end-to-end tests of its API machinery, through the gateway. Their build takes half an hour on two cores, once.
conformance: build controlplane
	conformance/run.sh

# An image for two platforms, without a container engine, into dist/image.
image:
	scripts/image.sh

# All files of a release into dist: make release VERSION=1.4.0.
release:
	scripts/release.sh "$$VERSION"

bench: build controlplane
	scripts/bench.sh

# Modules of their own, which keep what they need out of the gateway's.
MODULES = clients/golang deploy/alerttest deploy/charttest deploy/grafana devcluster devcontrollers devissuer release

lint: web/node_modules/.package-lock.json
	test -z "$$(gofmt -l cmd internal scripts web/*.go e2e bench clients/*.go conformance $(MODULES) | tee /dev/stderr)"
	go vet ./... && go run $(STATICCHECK) ./...
	for module in $(MODULES); do go vet -C $$module ./... && (cd $$module && go run $(STATICCHECK) ./...) || exit 1; done
	npm --prefix web run lint --silent

clean:
	rm -rf bin .demo web/portal/dist/assets web/portal/dist/index.html web/node_modules
