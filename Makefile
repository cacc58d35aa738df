# Each target installs what it needs (apt, cargo), then does its job.

CARGO_FLAGS := --locked
PUNCTUAL := target/release/punctual

.PHONY: all demo test test-kernels fuzz oracles bench experiments vm vm-compare \
	install uninstall clean

# Variables of `make install` are not for the makefiles of dependencies: libbpf's knows DESTDIR and
# PREFIX, too.
all:
	scripts/setup build
	env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u DESTDIR -u PREFIX \
		cargo build --release $(CARGO_FLAGS) -p punctual-cli -p punctual-capi -p punctual-rtai \
		-p punctual-rtlinux

# The main job, to be seen in a minute: real programs with enforced budgets on this kernel.
demo:
	scripts/setup demo
	cargo build --release $(CARGO_FLAGS) -p punctual-cli
	scripts/demo $(PUNCTUAL)

# Everything once; as root, for the tests that need real-time priorities, cgroups and BPF.
test:
	scripts/setup test
	scripts/test

# The tests that need a kernel, under the others.
test-kernels:
	scripts/setup test
	scripts/test kernels

# Ten minutes of each fuzzer: of the dispatcher, the service, shared memory and libpunctual;
# `make test` has a minute of them.
fuzz:
	scripts/setup fuzz
	scripts/fuzz 600

# Admission against 100,000 simulated sets per policy, and the simulator against SimSo; `make test`
# has a smaller sample.
oracles:
	scripts/setup test
	PUNCTUAL_SETS=100000 cargo test --release $(CARGO_FLAGS) -p punctual-oracles -- --nocapture
	PUNCTUAL_SETS=2000 tests/oracles/simso/run

# Performance, compared side by side; docs/benchmarks.md has the results.
bench:
	scripts/setup bench
	bench/run $(BENCH)

# The papers' experiments, at most an hour; a figure that is there is not measured again
# (docs/experiments.md).
#   make experiments [EXPERIMENTS="--again latency"]
experiments:
	scripts/setup bench
	cargo build --release $(CARGO_FLAGS) -p punctual-cli
	bench/experiments/run $(EXPERIMENTS)

# A task set in a virtual machine with a counted clock, under a kernel of Debian's: the same output
# each time.
#   make vm [KERNEL=6.18|7.3|7.3-rt] [SET=examples/servo.toml] [HOST=user] [RESULTS=folder]
#           [ARGS="--duration 2s"]
KERNEL := 7.3
SET := examples/servo.toml
HOST := user
vm:
	@scripts/setup vm
	@cargo build --quiet --release $(CARGO_FLAGS) -p punctual-cli
	@vm/set $(KERNEL) $(SET) $(if $(RESULTS),--results $(RESULTS)) -- --host $(HOST) $(ARGS)

# The same measurements under several kernels, in virtual machines with a counted clock, and a
# report of them. A kernel whose results are there is not measured again.
#   make vm-compare [COMPARE="--seconds 60 6.18 7.3-rt"]
vm-compare:
	@scripts/setup vm
	@cargo build --quiet --release $(CARGO_FLAGS) -p punctual-cli
	@vm/compare $(COMPARE)

# The command, its man pages and shell completions, roles, the units of the service, its policy for
# the system bus and its action for polkit, the header for policies in C, libpunctual with its
# header and man pages, liblxrt with RTAI's headers, and librtlinux with RT-Linux's.
#   make install [PREFIX=/usr/local] [DESTDIR=...] [REALTIME_KIT=yes]
# With REALTIME_KIT=yes the bus starts the service for clients of RealtimeKit, not rtkit-daemon.
PREFIX := /usr/local
SHARE = $(DESTDIR)$(PREFIX)/share
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system
# The system bus and polkit read these here alone; activation files of $(PREFIX)/share are read
# before others.
DBUS_POLICIES = $(DESTDIR)/usr/share/dbus-1/system.d
POLKIT_ACTIONS = $(DESTDIR)/usr/share/polkit-1/actions
DBUS_ACTIVATION = $(SHARE)/dbus-1/system-services/org.freedesktop.RealtimeKit1.service
INSTALLED = $(DESTDIR)$(PREFIX)/bin/punctual $(DESTDIR)$(PREFIX)/include/punctual_policy.h \
	$(SHARE)/man/man1/punctual.1 $(SHARE)/man/man1/punctual-*.1 \
	$(SHARE)/bash-completion/completions/punctual $(SHARE)/zsh/site-functions/_punctual \
	$(SHARE)/fish/vendor_completions.d/punctual.fish \
	$(UNITS)/punctuald.socket $(UNITS)/punctuald.service \
	$(DBUS_POLICIES)/punctuald.conf $(DBUS_ACTIVATION) \
	$(POLKIT_ACTIONS)/io.punctual.policy \
	$(addprefix $(DESTDIR)$(PREFIX)/lib/punctual/,$(wildcard roles.d/*.toml))
install: all
	install -D -m 755 $(PUNCTUAL) $(DESTDIR)$(PREFIX)/bin/punctual
	install -D -m 644 crates/plugin/include/punctual_policy.h \
		$(DESTDIR)$(PREFIX)/include/punctual_policy.h
	install -d $(DESTDIR)$(PREFIX)/lib/punctual/roles.d
	install -m 644 roles.d/*.toml $(DESTDIR)$(PREFIX)/lib/punctual/roles.d
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
		$(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(PUNCTUAL) man $(SHARE)/man/man1
	$(PUNCTUAL) completions bash >$(SHARE)/bash-completion/completions/punctual
	$(PUNCTUAL) completions zsh >$(SHARE)/zsh/site-functions/_punctual
	$(PUNCTUAL) completions fish >$(SHARE)/fish/vendor_completions.d/punctual.fish
	install -D -m 644 systemd/punctuald.socket $(UNITS)/punctuald.socket
	sed 's|@BINDIR@|$(PREFIX)/bin|' systemd/punctuald.service.in >$(UNITS)/punctuald.service
	chmod 644 $(UNITS)/punctuald.service
	install -D -m 644 dbus/punctuald.conf $(DBUS_POLICIES)/punctuald.conf
	install -D -m 644 polkit/io.punctual.policy $(POLKIT_ACTIONS)/io.punctual.policy
ifeq ($(REALTIME_KIT),yes)
	install -d $(dir $(DBUS_ACTIVATION))
	sed 's|@BINDIR@|$(PREFIX)/bin|' dbus/org.freedesktop.RealtimeKit1.service.in \
		>$(DBUS_ACTIVATION)
	chmod 644 $(DBUS_ACTIVATION)
endif
	$(MAKE) -C crates/capi install PREFIX=$(PREFIX) DESTDIR=$(abspath $(DESTDIR))
	$(MAKE) -C crates/rtai install PREFIX=$(PREFIX) DESTDIR=$(abspath $(DESTDIR))
	$(MAKE) -C crates/rtlinux install PREFIX=$(PREFIX) DESTDIR=$(abspath $(DESTDIR))

# DESTDIR and PREFIX as with `make install`.
uninstall:
	$(RM) $(INSTALLED)
	$(MAKE) -C crates/capi uninstall PREFIX=$(PREFIX) DESTDIR=$(abspath $(DESTDIR))
	$(MAKE) -C crates/rtai uninstall PREFIX=$(PREFIX) DESTDIR=$(abspath $(DESTDIR))
	$(MAKE) -C crates/rtlinux uninstall PREFIX=$(PREFIX) DESTDIR=$(abspath $(DESTDIR))

clean:
	cargo clean
