# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Set-up shared by ./check and ./demo, which source this file: installs what is missing, makes configure,
# configures and builds a build folder. Nothing here needs root unless a package is missing.

# Package and how to see that it is there: a command, with a slash a file below /usr/include or, if it begins
# with one, a file anywhere (wildcards allowed).
setup_packages='
	gcc gcc
	g++ g++
	libc6-dev ./stdio.h
	make make
	autoconf autoreconf
	automake automake
	libtool libtoolize
	pkg-config pkg-config
	linux-libc-dev rdma/rdma_user_cm.h
	libibverbs-dev infiniband/verbs.h
	librdmacm-dev rdma/rdma_cma.h
	libltdl-dev ./ltdl.h
	libcmocka-dev ./cmocka.h
	uthash-dev ./uthash.h
	libconfig-dev ./libconfig.h
	libdw-dev elfutils/libdwfl.h
	libpcap-dev pcap/pcap.h
	libjansson-dev ./jansson.h
	libfabric-dev rdma/fabric.h
	rdmacm-utils rping
	ibverbs-utils ibv_devinfo
	tshark tshark
	jq jq
	valgrind valgrind
	libxml2-utils xmllint
'

# The second compiler.
# shellcheck disable=SC2034 # used by check
setup_clang_packages='
	clang clang
	libclang-rt-dev /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.a
'

# What ./check --kernel needs besides. The kernel itself tests/kernel gets without installing it.
# shellcheck disable=SC2034 # used by check
setup_kernel_packages='
	qemu-system-x86 qemu-system-x86_64
	linux-headers-6.12-amd64 /usr/src/linux-headers-6.12.*-amd64/Module.symvers
	busybox-static /usr/share/doc/busybox-static/copyright
	cpio cpio
	xz-utils xz
	kmod /*bin/depmod
	iproute2 rdma
	perftest ib_send_bw
	strace strace
'

setup_tools=$(cd "${BASH_SOURCE[0]%/*}" && pwd)

setup_say() { printf '== %s\n' "$*"; }

setup_fail() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Prints the packages that are missing.
setup_missing_packages() {
	local package probe

	while read -r package probe; do
		case $probe in
		'') ;;
		/*) compgen -G "$probe" >/dev/null || echo "$package" ;;
		*/*) [ -e "/usr/include/$probe" ] || echo "$package" ;;
		*) command -v "$probe" >/dev/null || echo "$package" ;;
		esac
	done <<<"$setup_packages"
}

# Installs what is missing. What apt-get prints is shown only if it fails.
setup_install_packages() {
	local missing command root log

	missing=$(setup_missing_packages)
	[ -n "$missing" ] || return 0
	missing=${missing//$'\n'/ }
	command="apt-get install $missing"

	command -v apt-get >/dev/null ||
		setup_fail "these Debian packages, or what your system has in their place, are missing: $missing"
	root=()
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null ||
			setup_fail "packages are missing and there is no sudo. As root, run: $command"
		root=(sudo)
		if [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
			setup_fail "packages are missing and sudo wants a password. As root, run: $command"
		fi
	fi

	setup_say "installing $missing"
	log=$(mktemp) || exit 1
	# shellcheck disable=SC2086 # a list of names
	if ! "${root[@]}" apt-get -q update >"$log" 2>&1 ||
	   ! "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y --no-install-recommends install $missing >>"$log" 2>&1 </dev/null; then
		tail -n 15 "$log" >&2
		rm -f "$log"
		setup_fail "apt-get failed. As root, run: $command"
	fi
	rm -f "$log"
	hash -r
	missing=$(setup_missing_packages)
	[ -z "$missing" ] || setup_fail "installed, but not found afterwards: ${missing//$'\n'/ }"
}

# Says why if the kernel of the tests is not to be had here.
setup_has_kernel() {
	local system

	compgen -G '/usr/src/linux-headers-6.12.*-amd64/Module.symvers' >/dev/null && return
	system=$(. /etc/os-release 2>/dev/null && echo "${ID-} ${VERSION_CODENAME-} $(uname -m)")
	[ "$system" != 'debian bookworm x86_64' ] || return 0
	echo "${0##*/} --kernel needs the kernel 6.12 of Debian 12 (amd64): the package linux-headers-6.12-amd64" >&2
	return 1
}

# setup_run LOG COMMAND...: runs it quietly; shows the end of its output if it fails.
setup_run() {
	local log=$1

	shift
	if ! "$@" >"$log" 2>&1 </dev/null; then
		grep -nE '(error|warning|Error|undefined reference)' "$log" | head -n 20 >&2
		echo '...' >&2
		tail -n 40 "$log" >&2
		echo "$*: failed (all of its output: $log)" >&2
		return 1
	fi
}

setup_jobs() { nproc 2>/dev/null || echo 3; }

# Makes configure in the checkout SRCDIR unless it is up to date.
setup_autoreconf() {
	local srcdir=$1 input='' file

	case $srcdir in
	*[[:space:]\"\#\$\&\'\`\\]*)
		setup_fail "configure and make need another path than '$srcdir': without blanks, quotes and \$, &, #, \\"
		;;
	esac
	[ ! -e "$srcdir/config.status" ] ||
		setup_fail "this checkout is configured in place: run 'make distclean' first"
	[ -e "$srcdir/configure" ] && [ -e "$srcdir/Makefile.in" ] || input=missing
	for file in "$srcdir"/configure.ac "$srcdir"/m4/polycm*.m4; do
		[ ! "$file" -nt "$srcdir/configure" ] || input=$file
	done
	[ -n "$input" ] || return 0

	[ -w "$srcdir" ] || setup_fail "$srcdir is not writable: configure cannot be made there"
	setup_say 'making configure'
	mkdir -p "$srcdir/build" &&
	setup_run "$srcdir/build/autoreconf.log" "$srcdir/autogen.sh" || exit 1
}

# setup_configure SRCDIR BUILDDIR OPTION...: configures once; make itself notices later changes. libtool, a script,
# takes more time than the compiler does; in dash it takes half of what it takes in bash.
setup_configure() {
	local srcdir=$1 builddir=$2 shell

	shift 2
	mkdir -p "$builddir" || return 1
	[ ! -e "$builddir/config.status" ] || [ ! -e "$builddir/Makefile" ] || return 0
	shell=$(command -v dash) || shell=${BASH:-/bin/sh}
	(cd "$builddir" && setup_run configure.log env CONFIG_SHELL="$shell" "$shell" "$srcdir/configure" "$@")
}

# setup_make BUILDDIR ARGUMENT...: make, with the quick steps for what is only tested.
setup_make() {
	local builddir=$1 shell

	shift
	shell=$(command -v dash) || shell=${BASH:-/bin/sh}
	make -C "$builddir" LIBTOOL="$shell $setup_tools/quick-libtool" "$@"
}

# setup_build BUILDDIR TARGET...
setup_build() {
	local builddir=$1

	shift
	setup_run "$builddir/make.log" setup_make "$builddir" -j"$(setup_jobs)" "$@"
}

# setup_tests BUILDDIR TARGET: runs make's TARGET; shows its errors only when the trouble is not in a test's own
# log (a test that does not build).
setup_tests() {
	local builddir=$1 log=$1/make-check.log

	# Tests wait as much as they compute.
	setup_make "$builddir" -k -j"$(($(setup_jobs) + 2))" "$2" >"$log" 2>&1 </dev/null && return
	grep -q '^# TOTAL: ' "$log" ||
		grep -E -A4 'error:|undefined reference|No rule to make|\*\*\* ' "$log" | head -n 60 >&2
	return 1
}
