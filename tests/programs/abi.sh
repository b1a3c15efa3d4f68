#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the library and the plugins show to the dynamic linker, held against the librdmacm and libibverbs that
# are installed: programs bind by name and version.

library=$abs_top_builddir/core/.libs/libpolycm.so.0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() {
	local what=$1

	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $what"
	fi
}

# exports FILE: "NAME VERSION" of every function that it defines for others; the version is empty for the base.
exports() {
	readelf --dyn-syms --wide "$1" | awk '$4 == "FUNC" && $7 != "UND" && $5 == "GLOBAL" {
		n = split($8, part, /@+/)
		print part[1], (n > 1 ? part[2] : "")
	}' | sort
}

installed() {
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

is_empty() {
	[ ! -s "$1" ] || { cat "$1"; false; }
}

exports "$library" >"$work/ours"
exports "$(installed librdmacm.so.1)" | grep '^rdma_.* RDMACM_' >"$work/librdmacm"
exports "$(installed libibverbs.so.1)" | grep ' IBVERBS_1' >"$work/libibverbs"
grep '^rdma_' "$work/ours" >"$work/rdma"
grep '^_\?ibv_.* .' "$work/ours" >"$work/ibv"

check 'librdmacm has calls to compare with' [ -s "$work/librdmacm" ]
check 'there are calls of ours' [ -s "$work/rdma" ]
comm -23 "$work/librdmacm" "$work/rdma" >"$work/missing"
check 'every rdma_* call of librdmacm is there under its version' is_empty "$work/missing"
comm -23 "$work/ibv" "$work/libibverbs" >"$work/extra"
check 'every ibv_* call of ours is one of libibverbs, under its version' is_empty "$work/extra"

# The C library's waits are ours in virtual time, without a version, which the dynamic linker lets stand for any.
waits='__poll_chk __ppoll_chk clock_nanosleep epoll_pwait epoll_pwait2 epoll_wait nanosleep poll ppoll pselect select
	sleep thrd_sleep usleep
	cnd_broadcast cnd_signal cnd_timedwait mq_timedreceive mq_timedsend mtx_timedlock pthread_cond_clockwait
	pthread_mutex_clocklock pthread_mutex_timedlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock
	pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock sem_clockwait sem_timedwait timerfd_settime
	clock_gettime gettimeofday time timespec_get'
printf '%s \n' $waits | sort >"$work/waits"
comm -23 "$work/waits" "$work/ours" >"$work/missing"
check 'the waits of the C library are there' is_empty "$work/missing"
readelf --dyn-syms --wide "$(installed libc.so.6)" | awk '$4 ~ /FUNC/ { sub(/@.*/, "", $8); print $8 }' | sort -u >"$work/libc"
comm -23 <(cut -d ' ' -f 1 "$work/waits") "$work/libc" >"$work/extra"
check 'and all of them are calls of the C library' is_empty "$work/extra"

# Of calls on conditions it may have two, so ours have the version of the newer, and linkers do not find them.
conditions='pthread_cond_broadcast pthread_cond_signal pthread_cond_timedwait'
for condition in $conditions; do
	readelf --dyn-syms --wide "$(installed libc.so.6)" | awk -v name="$condition" '{
		n = split($8, part, /@+/)
		if (part[1] == name && $8 ~ /@GLIBC_2\.3\.2$/)
			version = part[2]
		if (part[1] == name)
			found = 1
	} END { if (found) print name, version }'
done >"$work/conditions"
comm -23 "$work/conditions" "$work/ours" >"$work/missing"
check 'the calls on conditions are there' is_empty "$work/missing"
readelf --dyn-syms --wide "$library" | awk '$7 != "UND" { print $8 }' | grep 'pthread_cond_.*@@' >"$work/extra"
check 'and no linker finds them with a version' is_empty "$work/extra"

# So are its questions about a file: a simulated device has a node that is not there (core/verbs/node.c); and the
# calls that make a descriptor non-blocking (core/wait/flags.c).
questions='__xstat __xstat64 access fcntl fcntl64 ioctl stat stat64'
printf '%s \n' $questions >"$work/questions"
grep -v '^rdma_\|^_\?ibv_.* .' "$work/ours" | grep -v '^polycm_.* POLYCM_0$' | grep -v '^ibv_query_gid_type $' |
	grep -vxF -f "$work/waits" -f "$work/conditions" -f "$work/questions" >"$work/other"
check 'nothing else is exported but polycm_* in POLYCM_0' is_empty "$work/other"

# A program that links nothing else of RDMA finds real devices only if the library brings libibverbs along.
check 'the library needs libibverbs' grep -q 'NEEDED.*\[libibverbs\.so\.1\]' <(readelf --dynamic "$library")

for plugin in "$abs_top_builddir"/providers/*/.libs/provider-*.so; do
	exports "$plugin" | grep -v '^polycm_provider_query_v1 ' >"$work/plugin"
	check "${plugin##*/} exports its query function alone" is_empty "$work/plugin"
	readelf --dyn-syms --wide "$plugin" | awk '$7 == "UND" && $8 ~ /^(polycm_|rdma_)/ { print $8 }' >"$work/plugin"
	check "${plugin##*/} needs nothing of the library" is_empty "$work/plugin"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
