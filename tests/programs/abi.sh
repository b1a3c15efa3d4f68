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
exports "$(installed librdmacm.so.1)" | grep ' RDMACM_' >"$work/librdmacm"
exports "$(installed libibverbs.so.1)" | grep ' IBVERBS_1' >"$work/libibverbs"
grep ' RDMACM_' "$work/ours" >"$work/rdma"
grep '^_\?ibv_.* .' "$work/ours" >"$work/ibv"

check 'librdmacm has calls to compare with' [ -s "$work/librdmacm" ]
check 'there are calls of ours' [ -s "$work/rdma" ]
comm -23 "$work/librdmacm" "$work/rdma" >"$work/missing"
check 'every call of the installed librdmacm is there under its version' is_empty "$work/missing"
grep -v '^#' "$abs_top_srcdir/tests/programs/librdmacm-exports.golden" | sort >"$work/newest"
diff "$work/newest" "$work/rdma" >"$work/difference"
check 'the calls of librdmacm are those of the newest one' is_empty "$work/difference"
cut -d ' ' -f 2 "$work/libibverbs" | sort -u >"$work/versions"
awk 'NR == FNR { known[$1]; next } $2 in known' "$work/versions" "$work/ibv" | comm -23 - "$work/libibverbs" >"$work/extra"
check 'every ibv_* call of ours is one of libibverbs, under its version, if it has that version' is_empty "$work/extra"

# A library that is linked with a newer librdmacm or libibverbs asks for versions, whichever calls it uses.
printf '%s\n' RDMACM_1.{0..5} IBVERBS_1.{0,1} IBVERBS_1.{5..18} | sort >"$work/newest"
readelf -VW "$library" | grep -oE 'Name: [A-Z]*_1\.[0-9]+$' | sed 's/.* //' | sort -u | comm -13 - "$work/newest" >"$work/missing"
check 'the versions up to those of rdma-core 65 are there' is_empty "$work/missing"

# libibverbs would look for its driver behind an object of ours. These calls take none: numbers, text and structs
# alone, or objects that simulated devices have not; ibv_resolve_eth_l2_from_gid asks for GIDs, and the kernel.
foreign='ibv_copy_ah_attr_from_kern ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern ibv_copy_qp_attr_from_kern
	ibv_dealloc_dmah ibv_destroy_comp_cntr ibv_dofork_range ibv_dontfork_range
	ibv_event_type_str ibv_fork_init ibv_get_sysfs_path ibv_inc_comp_cntr ibv_inc_err_comp_cntr
	ibv_is_fork_initialized ibv_node_type_str ibv_port_state_str ibv_rate_to_mbps ibv_rate_to_mult
	ibv_read_comp_cntr ibv_read_err_comp_cntr ibv_register_driver ibv_resolve_eth_l2_from_gid ibv_set_comp_cntr
	ibv_set_err_comp_cntr ibv_wc_status_str'
printf '%s\n' $foreign | sort >"$work/foreign"
cut -d ' ' -f 1 "$work/ibv" | sort -u - "$work/foreign" >"$work/names"
cut -d ' ' -f 1 "$work/libibverbs" | grep '^_\?ibv_' | sort -u | comm -23 - "$work/names" >"$work/missing"
check 'every call of libibverbs that takes an object of a device is there' is_empty "$work/missing"

grep -v ' RDMACM_\|^_\?ibv_.* .' "$work/ours" | grep -v '^polycm_.* POLYCM_0$' |
	grep -v '^ibv_query_gid_type $\|^polycm_\(interposer_attach\|rsocket_[a-z_]*\) POLYCM_PRIVATE$' >"$work/other"
check 'nothing else is exported but polycm_*' is_empty "$work/other"

# What takes the C library's place is a library of its own. Its names have no version, which the dynamic linker lets
# stand for any.
interposer=$abs_top_builddir/interpose/.libs/libpolycm-interpose.so.0
exports "$interposer" >"$work/interposer"
waits='__poll_chk __ppoll_chk clock_nanosleep epoll_pwait epoll_pwait2 epoll_wait nanosleep poll ppoll pselect select
	sleep thrd_sleep usleep
	cnd_broadcast cnd_signal cnd_timedwait mq_timedreceive mq_timedsend mtx_timedlock pthread_cond_clockwait
	pthread_mutex_clocklock pthread_mutex_timedlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock
	pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock sem_clockwait sem_timedwait timerfd_settime
	timerfd_gettime __read_chk read alarm ualarm getitimer setitimer timer_create timer_delete timer_gettime
	timer_settime pause sigsuspend sigtimedwait sigwait sigwaitinfo
	clock_gettime gettimeofday time timespec_get'
printf '%s \n' $waits | sort >"$work/waits"
comm -23 "$work/waits" "$work/interposer" >"$work/missing"
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
comm -23 "$work/conditions" "$work/interposer" >"$work/missing"
check 'the calls on conditions are there' is_empty "$work/missing"
readelf --dyn-syms --wide "$interposer" | awk '$7 != "UND" { print $8 }' | grep 'pthread_cond_.*@@' >"$work/extra"
check 'and no linker finds them with a version' is_empty "$work/extra"

# So are its calls with paths, which may be a simulated device's in /dev or /sys (interpose/sysfs.h); and those that
# make a descriptor non-blocking (interpose/flags.c).
questions='__getcwd_chk __lxstat __lxstat64 __open64_2 __open_2 __openat64_2 __openat_2 __readlink_chk __readlinkat_chk
	__realpath_chk __xstat __xstat64 access canonicalize_file_name chdir eaccess euidaccess faccessat fchdir fcntl
	fcntl64 fopen fopen64 freopen freopen64 fstatat fstatat64 getcwd getxattr glob glob64 ioctl lgetxattr lstat
	lstat64 nftw nftw64 open open64 openat openat64 opendir readlink readlinkat realpath scandir scandir64 stat
	stat64 statx'
printf '%s \n' $questions >"$work/questions"
grep -v '^polycm_interposer_version $' "$work/interposer" |
	grep -vxF -f "$work/waits" -f "$work/conditions" -f "$work/questions" >"$work/other"
check 'it exports nothing else' is_empty "$work/other"

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
