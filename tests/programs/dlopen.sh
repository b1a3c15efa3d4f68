#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs that open libibverbs and librdmacm while they run, in each way that the dynamic linker has, see
# the simulated device.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}" rping
[ -e "$auditor" ] || skip 'libpolycm-audit is not built for this system'
grep -q '^#define POLYCM_SANITIZED 1' "$abs_top_builddir/config.h" && skip 'polycm itself has a sanitizer'
sources=$abs_top_srcdir/tests/programs
export POLYCM_SIM_FABRIC=test-$$
[ -n "${POLYCM_PROVIDER_PATH-}" ] || export POLYCM_PROVIDER_PATH=$copy/lib/polycm

# --- A program that is not linked with RDMA, and libraries that are. ---

real() { ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'; }
verbs=$(real libibverbs.so.1) rdmacm=$(real librdmacm.so.1)
program=$work/program
mkdir "$work/other" && cp "$verbs" "$work/other/libibverbs.so.1" && cp "$rdmacm" "$work/other/librdmacm.so.1" || exit 99

build() { check "$1 compiles" $CC -Wall -Wextra -Werror -o "$work/$1" "${@:2}"; }
plugin=("$sources/dlopen_plugin.c" -shared -fPIC)
build program "$sources/dlopen.c" -ldl
build linked "$sources/dlopen.c" -ldl -Wl,--no-as-needed -lrdmacm -libverbs
build lazy.so "${plugin[@]}" -Wl,-z,lazy -lrdmacm -libverbs
build now.so "${plugin[@]}" -Wl,-z,now -Wl,-z,relro -lrdmacm -libverbs
build noplt.so "${plugin[@]}" -fno-plt -lrdmacm -libverbs
build order.so "${plugin[@]}" -Wl,--no-as-needed -lc -libverbs -lrdmacm
build runpath.so "${plugin[@]}" -lrdmacm -libverbs "-Wl,--enable-new-dtags,-rpath,$work/other"
build rpath.so "${plugin[@]}" -lrdmacm -libverbs "-Wl,--disable-new-dtags,-rpath,$work/other"
build opens.so "${plugin[@]}" -DOPENS -ldl
build opens-runpath.so "${plugin[@]}" -DOPENS -ldl "-Wl,--enable-new-dtags,-rpath,$work/other"
echo 'IBVERBS_1.0 { ibv_read_sysfs_file; };' >"$work/wrapper.map"
build wrapper.so "$sources/dlopen_wrapper.c" -shared -fPIC -ldl "-Wl,--version-script=$work/wrapper.map"
chmod -R go+rX "$work"

works() { exits 0 polycm run --provider sim -- "$@" && has "$work/out" done && [ ! -s "$work/err" ]; }

# --- Each case by itself: NAME | arguments of the program, four for each library that it opens; -: no version. ---

cases() {
	cat <<END
symbol by symbol with a version | use libibverbs.so.1 now IBVERBS_1.1
a table of symbols | use libibverbs.so.1 lazy
no version in the name | use libibverbs.so now
no version in the name of librdmacm | sockets librdmacm.so now
RTLD_GLOBAL | use libibverbs.so.1 now,global
RTLD_DEEPBIND | use libibverbs.so.1 lazy,deepbind
RTLD_DEEPBIND at once | use libibverbs.so.1 now,deepbind
RTLD_NOLOAD | use libibverbs.so.1 now,noload
RTLD_NODELETE | use libibverbs.so.1 now,nodelete
an absolute path | use $verbs now
an absolute path of a copy | use $work/other/libibverbs.so.1 now IBVERBS_1.1
a copy, RTLD_DEEPBIND | use $work/other/libibverbs.so.1 now,deepbind
a namespace | use libibverbs.so.1 now,namespace
a namespace, an absolute path | use $verbs now,namespace IBVERBS_1.1
a namespace, no version in the name | use libibverbs.so now,namespace
again and again | use libibverbs.so.1 now IBVERBS_1.1 use libibverbs.so lazy - use $verbs now,deepbind -
the interface of libibverbs 1.0 | oldest libibverbs.so.1 now
rsockets | sockets librdmacm.so.1 now
rsockets, RTLD_DEEPBIND | sockets librdmacm.so.1 now,deepbind
rsockets of a copy | sockets $work/other/librdmacm.so.1 now,deepbind
END
	for plugin in lazy now noplt order runpath rpath opens opens-runpath; do
		for way in lazy now lazy,global lazy,deepbind now,deepbind lazy,namespace now,namespace; do
			echo "a library ($plugin.so, $way) | plugin $work/$plugin.so $way"
		done
	done
}
while IFS='|' read -r name arguments; do
	read -ra arguments <<<"$arguments"
	check "$name" works "$program" "${arguments[@]}"
done < <(cases)

# --- Before and after the program's own use of RDMA, and with other settings of the dynamic linker. ---

check 'a program that is linked with both' works "$work/linked" use libibverbs.so.1 now IBVERBS_1.1 \
	sockets librdmacm.so.1 now - plugin "$work/noplt.so" now,deepbind
check 'after a library that has used it' works "$program" plugin "$work/now.so" now - use libibverbs.so.1 now IBVERBS_1.1
check 'before a library that uses it' works "$program" use libibverbs.so.1 now IBVERBS_1.1 plugin "$work/now.so" now
check 'two namespaces' works "$program" plugin "$work/now.so" now,namespace - plugin "$work/opens.so" now,namespace - \
	use libibverbs.so.1 now
check 'LD_BIND_NOW' eval 'LD_BIND_NOW=1 works "$program" plugin "$work/lazy.so" lazy,deepbind'
check 'LD_LIBRARY_PATH to a copy' eval '
	command=("${as_user[@]}" timeout --foreground "$limit" env "LD_LIBRARY_PATH=$work/other:${library%/*}" "$copy/bin/polycm")
	works "$program" use libibverbs.so.1 now IBVERBS_1.1 sockets librdmacm.so.1 now - plugin "$work/now.so" now,deepbind'
check 'a child' works sh -c "$program use libibverbs.so.1 now && $program plugin $work/now.so now,deepbind"
check 'a child of an env that clears nothing' works env A=b "$program" use libibverbs.so.1 now
check 'virtual time' eval 'POLYCM_SIM_CLOCK=virtual works "$program" plugin "$work/lazy.so" lazy,deepbind'

# A constructor that runs before those of libpolycm.
cat >"$work/early.c" <<'END'
#include <dlfcn.h>
__attribute__((constructor)) static void early(void)
{
	void *list = dlsym(dlopen("libibverbs.so.1", RTLD_NOW), "ibv_get_device_list");
	void **devices = list ? ((void **(*)(int *))list)(0) : 0;

	if (!devices || !devices[0])
		__builtin_trap();
}
END
build early.so "$work/early.c" -shared -fPIC -ldl
build early "$sources/dlopen.c" -ldl -Wl,--no-as-needed "$work/early.so" "-Wl,-rpath,$work"
chmod -R go+rX "$work"
check 'a constructor' works "$work/early" use libibverbs.so.1 now

# A library that the program is linked with and that has more static TLS than others (jemalloc has 2.6 KB), and
# threads with the smallest stack.
cat >"$work/static.c" <<'END'
__thread char room[3000] __attribute__((tls_model("initial-exec")));
char *static_tls(void);
char *static_tls(void) { return room; }
END
cat >"$work/threads.c" <<'END'
#include <pthread.h>
#include <stdio.h>
char *static_tls(void);
static void *thread(void *arg) { static_tls()[1] = 1; return arg; }
int main(void)
{
	pthread_attr_t attr;
	pthread_t id;
	if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 16384) ||
	    pthread_create(&id, &attr, thread, NULL) || pthread_join(id, NULL))
		return 1;
	return puts("done") < 0;
}
END
build static.so "$work/static.c" -shared -fPIC
build threads "$work/threads.c" "$work/static.so" "-Wl,-rpath,$work" -pthread
chmod -R go+rX "$work"
check 'static TLS of a library, small stacks' works "$work/threads"
sed -i 's/3000/9000/' "$work/static.c"
mkdir "$work/large"
build large/static.so "$work/static.c" -shared -fPIC
sed -i 's/16384/65536/' "$work/threads.c"
build large/threads "$work/threads.c" "$work/large/static.so" "-Wl,-rpath,$work/large" -pthread
chmod -R go+rX "$work"
check 'too much static TLS' eval 'exits 127 polycm run --provider sim "$work/large/threads" &&
	has "$work/err" "cannot allocate memory in static TLS block"'
check 'room for it' eval 'GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 works "$work/large/threads"'
check 'without the auditor' works env -u LD_AUDIT "$work/large/threads"

# A namespace of its own has no libpolycm-interpose.
check 'virtual time in a namespace' eval 'POLYCM_SIM_CLOCK=virtual exits 1 polycm run --provider sim \
	"$program" plugin "$work/opens.so" now,namespace && has "$work/err" "virtual time needs libpolycm-interpose"'

# --- A connection. ---

mkdir -p "$work/server"
connects() {
	local status=1

	if start "$work/server" "${command[@]}" run --provider sim --log info rping -s -a 127.0.0.1 -p 7471; then
		exits 0 polycm run --provider sim "$program" connects "$1" "$2" && has "$work/out" 'connected through sim0'
		status=$?
	fi
	stop_started
	wait
	return "$status"
}
check 'a connection' connects librdmacm.so.1 now
check 'a connection, RTLD_DEEPBIND' connects librdmacm.so now,deepbind

# --- What the dynamic linker itself says. ---

# No call of the program's objects leads to the real libraries but those that libpolycm lacks.
bindings() {
	user env "LD_PRELOAD=$library" "LD_AUDIT=$auditor" POLYCM_PROVIDER=sim LD_BIND_NOW=1 LD_DEBUG=bindings \
		"$program" plugin "$1" "$2" 2>&1 >/dev/null |
		grep -E "binding file $work/[a-z]*.so .* symbol .(rdma|ibv)_" >"$work/bindings"
	[ -s "$work/bindings" ] && ! grep -v 'to [^ ]*/libpolycm.so.0 ' "$work/bindings"
}
for way in now now,deepbind now,namespace; do
	check "bindings of a library ($way)" bindings "$work/noplt.so" "$way"
done

# A name without a version is not searched for: only packages for development have it.
searches() {
	user env "LD_PRELOAD=$library" "LD_AUDIT=$auditor" POLYCM_PROVIDER=sim LD_DEBUG=libs \
		"$program" sockets librdmacm.so now >"$work/out" 2>"$work/err"
	has "$work/err" 'find library=librdmacm.so.1 ' && lacks "$work/err" 'find library=librdmacm.so '
}
check 'a name without a version' searches

# --- Beside others. ---

# A library behind libpolycm that wraps libibverbs: what libpolycm does not do itself comes to it once.
wraps() {
	LD_PRELOAD=$work/wrapper.so exits 0 polycm run --provider sim -- "$program" plugin "$work/opens.so" now &&
		has "$work/err" 'wrapper: depth 1' && lacks "$work/err" 'wrapper: depth 2'
}
check 'a wrapper behind libpolycm' wraps

cat >"$work/auditor.c" <<'END'
#define _GNU_SOURCE
#include <link.h>
#include <unistd.h>
unsigned int la_version(unsigned int version) { return version; }
unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	(void)map;
	(void)space;
	*cookie = 7;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to, unsigned int *flags,
		       const char *name)
{
	(void)index;
	(void)flags;
	if (*from != 7 || *to != 7)
		_exit(3);
	if (name[0] == 'p' && name[1] == 'l' && name[2] == 'u' && name[3] == 'g')
		write(2, "seen\n", 5);
	return symbol->st_value;
}
END
build auditor.so "$work/auditor.c" -shared -fPIC
chmod -R go+rX "$work"
beside_an_auditor() {
	LD_AUDIT=$work/auditor.so exits 0 polycm run --provider sim -- "$program" plugin "$work/now.so" now,deepbind - \
		use libibverbs.so.1 now && has "$work/err" seen
}
check "beside a user's auditor" beside_an_auditor
check "a wrapper beside a user's auditor" eval 'LD_AUDIT=$work/auditor.so wraps'

python=$(PATH=/usr/bin:/bin command -v python3) && check 'Python' eval 'exits 0 polycm run --provider sim -- "$python" -c "
import ctypes
verbs = ctypes.CDLL(\"libibverbs.so.1\", use_errno=True)
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_get_device_name.restype = ctypes.c_char_p
verbs.ibv_open_device.restype = ctypes.c_void_p
devices = verbs.ibv_get_device_list(None)
print(verbs.ibv_get_device_name(ctypes.c_void_p(devices[0])).decode())
assert verbs.ibv_open_device(ctypes.c_void_p(devices[0]))
" && counts "$work/out" 1 "^sim0$"'

# --- The auditor itself. ---

check 'the auditor needs no library' eval '! readelf -dW "$auditor" | grep NEEDED'
without() {
	exits 1 user env "LD_PRELOAD=$library" POLYCM_PROVIDER=sim timeout --foreground "$limit" "$program" "$@" &&
		has "$work/err" 'no device is listed'
}
check 'without it, dlsym() finds the real one' without use libibverbs.so.1 now

finish
