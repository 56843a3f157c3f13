# make run and make test need nothing but Python 3.11+ and make: each prepares what it uses.
# What was prepared is vouched for by a stamp inside it, so deleting a folder is a full reset of it,
# and a second call only compares the stamps with the files they were made from.

PYTHON   ?= python3
CHROMIUM ?= /usr/bin/chromium
export CHROMIUM

BIN      := .venv/bin
FRONTEND := web/frontend
# What was compiled is kept, whatever the environment says: else each run compiles all tests anew.
PYTEST   := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest
VENV     := .venv/.made
RUN      := .venv/.run-installed
DEV      := .venv/.dev-installed
MODULES  := $(FRONTEND)/node_modules/.installed
BUNDLE   := web/static/.built

# The folders are listed too: their time changes when a file is taken away. docs/ has its slash
# because docs is a target.
SOURCES  := $(FRONTEND)/build.mjs $(FRONTEND)/tsconfig.json appliance/core/folding.json \
            $(shell find $(FRONTEND)/src $(FRONTEND)/styles docs/ 2>/dev/null)

# A network that hangs must not hang the build. macOS has no timeout of its own.
DEADLINE := $(if $(shell command -v timeout),timeout 900)
# Every file is checked against its hash; PyQRCode, published as source, is built with the pinned
# setuptools and not with whatever is newest today.
INSTALL   = $(DEADLINE) $(BIN)/python -m pip install --quiet --require-hashes \
            --no-build-isolation --use-pep517 --disable-pip-version-check --no-input --timeout 60 --retries 3
NPM       = PATH="$(CURDIR)/$(BIN):$$PATH" $(DEADLINE) npm --prefix $(FRONTEND) --loglevel=error \
            --fetch-timeout=60000 --fetch-retries=3 --fetch-retry-mintimeout=1000 \
            --fetch-retry-maxtimeout=10000

say   = printf '\n== %s\n' "$(1)"
# Ends a step that needs the network with one sentence about what to do.
or_network = || { echo "make: $(1) could not be installed. Check the network and the package registry, then run make again: what is already here is kept." >&2; exit 1; }
# Installs one Debian package where this user may, quietly fails where not.
apt   = { command -v apt-get >/dev/null && { test "$$(id -u)" = 0 || sudo -n true 2>/dev/null; } \
          && $(call say,installing Debian's $(1)) \
          && as_root=$$(test "$$(id -u)" = 0 || echo sudo) \
          && $$as_root apt-get -qq update </dev/null \
          && $$as_root $(DEADLINE) env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
             -o DPkg::Lock::Timeout=120 install --no-install-recommends $(1) </dev/null >/dev/null; }

# The name of this Python in Debian's packages, such as python3.11.
DEBIAN_PYTHON = python$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ENSUREPIP = $(PYTHON) -c 'import ensurepip' 2>/dev/null

# What some tests need of this machine.
OWN_DISK    := { unshare -rm mount -t tmpfs tmpfs /mnt || unshare -m mount -t tmpfs tmpfs /mnt; }

# The tests among the checks. `make check test` runs them once.
CHECKED := tests/test_architecture.py tests/test_docs.py tests/test_templates.py tests/promises/attacks/test_no_secrets.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run program setup test test-all rest check clients audit bench soak binary release journey lock clean

help:
	@echo 'make run      serve the demo venue on http://127.0.0.1:8080  (PORT=8090 elsewhere)'
	@echo 'make test     the tests of every day, in three minutes   (PYTEST_ARGS="-k door" for some)'
	@echo 'make rest     all that it leaves out: browser, processes, whatever is slow'
	@echo 'make test-all both'
	@echo 'make check    style, types, import directions, documentation, secrets left in the source'
	@echo 'make docs     write the generated documents in docs/reference/'
	@echo 'make clients  pack the clients that the box serves; book with these and with generated ones'
	@echo 'make audit    ask for known holes in what is pinned; needs the network'
	@echo 'make bench    measure the box beside a plain implementation, doors under load, and growth'
	@echo 'make soak     the long tests in full, with a table at the end; less than an hour (ONLY="kills cuts")'
	@echo 'make binary   build dist/venuebox, one file with everything inside, and measure it'
	@echo 'make release  sign it with KEY=release.pem, for venuebox update'
	@echo 'make journey  run the whole journey with it, on a machine with nothing but the C library'
	@echo 'make pictures take the pictures of the README from the demo'
	@echo 'make program  prepare the program alone: .venv/bin/venuebox'
	@echo 'make setup    the same with everything that tests and checks it'
	@echo 'make lock     pin the newest versions and their hashes in requirements/ and package-lock.json'
	@echo 'make clean    remove everything that make has built'
	@echo 'PYTHON=/path/to/python3.12 chooses the Python (3.11 or newer)'

# Compiled here once: where Python may not or shall not leave its files, each start would compile all.
program: $(RUN) $(BUNDLE)
	@$(BIN)/python -m compileall -q -x 'frontend|static' appliance terminal_bridge web
	@echo 'ready: $(BIN)/venuebox'

setup: program $(DEV)

run: program
	@command -v curl >/dev/null || $(call apt,curl) || echo 'make: the four steps below use curl: install it to follow them'
	@exec $(BIN)/venuebox serve --demo $(if $(filter command,$(origin PORT)),--port $(PORT))

# The default tier: about three minutes, and nothing but Python. `rest` is all that it leaves out.
REST := slow or process or browser or network
# Some wait while others work.
CORES := $(shell getconf _NPROCESSORS_ONLN)
TEST   = $(PYTEST) --dist loadfile --ignore=tests/clients --ignore=tests/journeys/test_binary.py

test: setup
	@$(call say,testing)
	@$(BIN)/node $(FRONTEND)/test.mjs
	@$(TEST) -n $$(($(CORES) + 1)) -m "smoke or not ($(REST) or soak)" $(PYTEST_ARGS)

test-all: test rest

rest: setup
	@test -x $(CHROMIUM) || $(call apt,chromium) || true
	@command -v certutil >/dev/null || $(call apt,libnss3-tools) || true
	@command -v curl >/dev/null || $(call apt,curl) || true
	@command -v php >/dev/null || $(call apt,php-cli) || true
	@test -x /usr/sbin/sshd || $(call apt,openssh-server) || true
	@command -v age >/dev/null || $(call apt,age) || true
	@test -x /usr/sbin/haproxy && command -v socat >/dev/null || $(call apt,haproxy socat) || true
	@test -x /usr/sbin/nft && command -v ip >/dev/null || $(call apt,nftables iproute2) || true
	@command -v pebble-challtestsrv >/dev/null || $(call apt,pebble) || true
	@test -d /usr/lib/postgresql || $(call apt,postgresql) || true
	@$(call say,testing what make test left out)
	@said="left out: tests/journeys/test_binary.py, which needs the built file: make journey"; \
	said="$$said\nleft out: tests/promises/attacks/test_no_secrets.py, which make check runs"; \
	said="$$said\nleft out: tests/clients, which needs generators of clients: make clients"; \
	test -x $(CHROMIUM) || { without="$$without --ignore=tests/browser --ignore=tests/journeys/test_outside.py"; \
		said="$$said\nleft out: tests/browser and tests/journeys/test_outside.py, because there is no Chromium at $(CHROMIUM) (CHROMIUM=/path/to/it says where)"; }; \
	command -v certutil >/dev/null || { without="$$without --ignore=tests/browser/test_https.py --ignore=tests/journeys/test_outside.py"; \
		said="$$said\nleft out: tests/browser/test_https.py and tests/journeys/test_outside.py, because there is no certutil (libnss3-tools) here"; }; \
	for program in curl php; do \
		command -v $$program >/dev/null || { without="$$without --ignore=tests/journeys/test_partner_docs_$$program.py"; \
			said="$$said\nleft out: the partners' examples in $$program, because there is no $$program here"; }; \
	done; \
	test -x /usr/sbin/sshd && command -v age >/dev/null || { without="$$without --ignore=tests/journeys/test_backup_targets.py"; \
		said="$$said\nleft out: tests/journeys/test_backup_targets.py, because there is no sshd (openssh-server) or age here"; }; \
	test -x /usr/sbin/sshd && test -x /usr/sbin/haproxy && command -v socat >/dev/null || { without="$$without --ignore=tests/journeys/test_outside.py --ignore=tests/journeys/test_relay_server.py"; \
		said="$$said\nleft out: tests/journeys/test_outside.py and test_relay_server.py, because there is no sshd, haproxy or socat here"; }; \
	test -x /usr/sbin/nft || said="$$said\nleft out: a venue behind a router (tests/journeys/test_outside.py, test_relay_server.py and test_spare_machine.py), because there is no nft (nftables) here"; \
	command -v pebble-challtestsrv >/dev/null || { without="$$without --ignore=tests/journeys/test_acme.py --ignore=tests/journeys/test_outside.py"; \
		said="$$said\nleft out: tests/journeys/test_acme.py and test_outside.py, because there is no ACME authority (pebble) here"; }; \
	test -d /usr/lib/postgresql || { without="$$without --ignore-glob=tests/promises/test_mirror*.py"; \
		said="$$said\nleft out: tests/promises/test_mirror*.py, because there is no postgresql here"; }; \
	$(OWN_DISK) 2>/dev/null || said="$$said\nleft out: the tests that fill a small volume (tests/promises), because this user may not mount one here"; \
	command -v systemd-analyze >/dev/null || said="$$said\nleft out: what systemd itself says of the unit, because there is no systemd-analyze here"; \
	$(TEST) -n $$(($(CORES) + 2)) --no-loadscope-reorder --ignore=tests/promises/attacks/test_no_secrets.py -m "($(REST)) and not smoke and not soak" $$without $(PYTEST_ARGS); status=$$?; \
	printf '%b\n' "$$said"; \
	exit $$status

check: setup
	@$(call say,style)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(call say,types)
	@$(BIN)/mypy
	@$(NPM) run --silent types
	@$(call say,the generated documents)
	@$(BIN)/python -B docs/generate.py --check
	@$(call say,import directions; documentation; secrets in the source)
	@$(PYTEST) -q -n auto $(CHECKED)

# docs/reference/, from the code.
.PHONY: docs
docs: setup
	@$(BIN)/python -B docs/generate.py

# The generators that partners use, apart from .venv: another Python and other node_modules.
CLIENTS       := build/clients
CLIENTS_READY := $(CLIENTS)/.made
CLIENTS_NPM    = $(subst --prefix $(FRONTEND),--prefix $(CLIENTS),$(NPM))

# The clients that the box serves.
PACKED        := web/static/clients/.packed

clients: setup $(CLIENTS_READY) $(PACKED)
	@$(call say,generating clients from the OpenAPI document: they compile and book)
	@$(PYTEST) -q -n 0 tests/clients $(PYTEST_ARGS)

$(CLIENTS_READY): $(RUN) requirements/clients.txt tests/clients/package.json tests/clients/package-lock.json
	@$(call say,installing generators of clients: about 150 MB the first time)
	@$(PYTHON) -m venv --clear $(CLIENTS)
	@$(subst $(BIN)/python,$(CLIENTS)/bin/python,$(INSTALL)) -r requirements/clients.txt $(call or_network,the generators)
	@cp tests/clients/package.json tests/clients/package-lock.json $(FRONTEND)/.npmrc $(CLIENTS)
	@$(CLIENTS_NPM) ci $(call or_network,the generators)
	@touch $@

$(PACKED): packaging/clients.py web/routes.py $(wildcard web/api/*) $(CLIENTS_READY) | $(BUNDLE)
	@$(call say,packing the clients that the box serves)
	@$(BIN)/python packaging/clients.py $(CLIENTS) $(@D)
	@touch $@

# pip-audit calls it no hole when the service answers nothing: what was not looked at is not known.
audit: setup
	@$(call say,asking for known holes in requirements/run.txt)
	@told=$$($(DEADLINE) $(BIN)/pip-audit --requirement requirements/run.txt --require-hashes --disable-pip \
		--progress-spinner off --timeout 20 2>&1); status=$$?; \
	case "$$told" in \
	*"Found "*" known vulnerabilit"*) echo "$$told"; exit $$status ;; \
	*"could not be audited"*) ;; \
	*"No known vulnerabilities found"*) echo "$$told"; exit 0 ;; \
	esac; \
	echo "make: the vulnerability service could not be asked about everything, so nothing is known: run make audit where the network reaches it" >&2; exit 2

bench: setup
	@command -v wrk >/dev/null || $(call apt,wrk) || { echo "make: the bench needs wrk, and this user may not install it" >&2; exit 1; }
	@command -v cc >/dev/null || $(call apt,gcc) || { echo "make: the bench needs gcc, and this user may not install it" >&2; exit 1; }
	@for each in beside_plain doors growth; do echo "# $$each"; $(BIN)/python -m bench.$$each || exit 1; done

# What `make test` tries short, in full: every step in turn, then a table; less than an hour.
# ONLY="kills contended" runs some of them.
soak: setup
	@$(BIN)/python -m tests.soak.run $(if $(ONLY),--only $(ONLY))

# The three pictures of the README, from the demo.
.PHONY: pictures
pictures: setup
	@test -x $(CHROMIUM) || $(call apt,chromium) || { echo "make: the pictures need Chromium, and this user may not install it" >&2; exit 1; }
	@$(BIN)/python packaging/pictures.py

# The one file. Its Python is apart from .venv: what only tests need cannot slip in.
BINARY_PYTHON := build/python
BINARY_READY  := $(BINARY_PYTHON)/.made

binary: binary-tools program $(BINARY_READY)
	@$(call say,building dist/venuebox: about half a minute)
	@PYTHONHASHSEED=0 $(BINARY_PYTHON)/bin/python packaging/build.py
	@$(BIN)/python packaging/measure.py dist/venuebox

# KEY is the Ed25519 key of all releases, in PEM; it is made if it does not exist.
release: setup $(BINARY_READY)
	@test -n "$(KEY)" || { echo "make: say which key signs: make release KEY=release.pem" >&2; exit 1; }
	@PYTHONPATH=. $(BIN)/python packaging/release.py "$(KEY)" --key
	@$(MAKE) $(PACKED) binary
	@PYTHONPATH=. $(BIN)/python packaging/release.py "$(KEY)"

journey: setup $(BINARY_READY)
	@test -x dist/venuebox || $(MAKE) binary
	@$(call say,testing dist/venuebox)
	@$(PYTEST) -q -n 0 tests/journeys/test_binary.py $(PYTEST_ARGS)

# Debian keeps Python's shared library in a package of its own. A Python without one has a name
# here that no loader opens.
BINARY_TOOLS = { objdump --version >/dev/null && $(PYTHON) -c \
  'import ctypes, sysconfig; ctypes.CDLL(sysconfig.get_config_var("INSTSONAME"))'; } 2>/dev/null

# Asked before anything is downloaded.
.PHONY: binary-tools
binary-tools:
	@$(BINARY_TOOLS) || { $(call apt,binutils lib$(DEBIAN_PYTHON)) && $(BINARY_TOOLS); } || { echo "make: the one file needs binutils and the shared library of $(PYTHON) (Debian's lib$(DEBIAN_PYTHON)): install them, then run make again" >&2; exit 1; }

$(BINARY_READY): $(VENV) requirements/build.txt requirements/binary.txt | binary-tools
	@$(call say,installing what builds the one file: about 150 MB the first time)
	@$(PYTHON) -m venv --clear $(BINARY_PYTHON)
	@$(subst $(BIN)/python,$(BINARY_PYTHON)/bin/python,$(INSTALL)) -r requirements/build.txt $(call or_network,the build tools)
	@$(subst $(BIN)/python,$(BINARY_PYTHON)/bin/python,$(INSTALL)) -r requirements/binary.txt $(call or_network,PyInstaller)
	@touch $@

LOCK = $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --custom-compile-command "make lock" \
       --python-version 3.11
# Pinned on the oldest Python: what only newer ones may leave out is then still there.
lock: setup
	$(LOCK) --output-file requirements/build.txt requirements/build.in
	$(LOCK) --output-file requirements/run.txt pyproject.toml
	$(LOCK) --output-file requirements/dev.txt requirements/dev.in
	$(LOCK) --output-file requirements/binary.txt requirements/binary.in
	$(LOCK) --output-file requirements/clients.txt requirements/clients.in
	$(NPM) update --package-lock-only
	cp $(FRONTEND)/.npmrc tests/clients && $(subst $(FRONTEND),tests/clients,$(NPM)) update --package-lock-only; rm tests/clients/.npmrc

clean:
	rm -rf .venv web/static $(FRONTEND)/node_modules build dist
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is not Python 3.11 or newer; name one that is: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(call say,preparing .venv with $$($(PYTHON) --version))
	@# Debian keeps the part that puts pip into an environment in a package of its own.
	@$(ENSUREPIP) || { $(call apt,$(DEBIAN_PYTHON)-venv) && $(ENSUREPIP); } || { echo "make: $(PYTHON) cannot make environments: install Debian's $(DEBIAN_PYTHON)-venv, then run make again" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv
	@touch $@

$(RUN): $(VENV) requirements/build.txt requirements/run.txt pyproject.toml
	@$(call say,installing the libraries: about 80 MB the first time)
	@$(INSTALL) -r requirements/build.txt $(call or_network,the build tools)
	@$(INSTALL) -r requirements/run.txt $(call or_network,the libraries)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUN) requirements/dev.txt
	@$(call say,installing what tests and checks need: about 150 MB the first time)
	@$(INSTALL) -r requirements/dev.txt $(call or_network,the test tools)
	@$(PYTEST) --collect-only -q >/dev/null 2>&1 || true # compiles the tests, once
	@touch $@

$(MODULES): $(RUN) $(FRONTEND)/package.json $(FRONTEND)/package-lock.json $(FRONTEND)/.npmrc
	@$(call say,installing the frontend tools)
	@$(NPM) ci $(call or_network,the frontend tools)
	@touch $@

$(BUNDLE): $(MODULES) $(SOURCES)
	@$(call say,bundling the pages)
	@# The stamp bears the time of the start: what is saved while bundling is bundled next time.
	@touch .venv/.bundling
	@$(BIN)/python -B docs/render.py build/documents
	@$(NPM) run --silent build
	@mv .venv/.bundling $@
