/* SPDX-License-Identifier: BSD-2-Clause */
/* nth.c - see nth.h */
#undef _FORTIFY_SOURCE
#include "nth.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

static const char *const kind_names[] = { "alloc", "descriptor", "map", "thread", "disk", "any" };
static const int kind_errnos[] = { ENOMEM, EMFILE, ENOMEM, EAGAIN, ENOSPC };

static const char *files = "libpolycm,provider-";	/* whose calls count; "": all */
static const char *report;
static char last[128];

/* Atomic, all of them. */
static bool armed;
static enum nth_kind wanted = NTH_ANY;
static unsigned long first, fail_count, num_matching, num_failed, nums[NTH_KINDS];

/* ------------------------------------------------------------------------
 * Does a call fail?
 */

/* What the checks below call is not counted. */
static __thread bool inside;

static const char *file_of(const void *caller)
{
	const char *slash;
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return "?";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static bool counts_for(const char *file)
{
	for (const char *name = files; *name;) {
		size_t len = strcspn(name, ",");

		if (len && memmem(file, strlen(file), name, len))
			return true;
		name += len + (name[len] == ',');
	}
	return !*files;
}

/* No stdio: the caller may be malloc(). */
static void write_report(const char *text, size_t len)
{
	int fd;

	if (!report)
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			  0666);
	if (fd < 0)
		return;
	(void)!write(fd, text, len);
	close(fd);
}

static bool is_due(enum nth_kind kind, unsigned long *ret_n)
{
	unsigned long from = __atomic_load_n(&first, __ATOMIC_RELAXED);
	unsigned long num = __atomic_load_n(&fail_count, __ATOMIC_RELAXED);
	enum nth_kind want = __atomic_load_n(&wanted, __ATOMIC_RELAXED);

	__atomic_add_fetch(&nums[kind], 1, __ATOMIC_RELAXED);
	if (want != NTH_ANY && want != kind)
		return false;
	*ret_n = __atomic_add_fetch(&num_matching, 1, __ATOMIC_RELAXED);
	return from && *ret_n >= from && (!num || *ret_n < from + num);
}

/* Counts the call; true: it fails, and errno says why. */
static bool fails(enum nth_kind kind, const char *call, const void *caller)
{
	char text[256];
	const char *file;
	unsigned long n;
	bool due;
	int len;

	if (!__atomic_load_n(&armed, __ATOMIC_ACQUIRE) || inside)
		return false;
	inside = true;
	file = file_of(caller);
	due = counts_for(file) && is_due(kind, &n);
	if (due) {
		__atomic_add_fetch(&num_failed, 1, __ATOMIC_RELAXED);
		snprintf(last, sizeof(last), "%s from %s", call, file);
		len = snprintf(text, sizeof(text), "%d failed %s %lu: %s from %s\n", (int)getpid(),
			       kind_names[kind], n, call, file);
		write_report(text, (size_t)len);
		errno = kind_errnos[kind];
	}
	inside = false;
	return due;
}

EXPORT void nth_arm(enum nth_kind kind, unsigned long from, unsigned long count)
{
	__atomic_store_n(&armed, false, __ATOMIC_SEQ_CST);
	for (int i = 0; i < NTH_KINDS; i++)
		__atomic_store_n(&nums[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&num_matching, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&num_failed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&wanted, kind, __ATOMIC_RELAXED);
	__atomic_store_n(&first, from, __ATOMIC_RELAXED);
	__atomic_store_n(&fail_count, count, __ATOMIC_RELAXED);
	__atomic_store_n(&armed, true, __ATOMIC_RELEASE);
}

EXPORT void nth_in(const char *names)
{
	files = names;
}

EXPORT bool nth_disarm(struct nth_counts *ret_counts)
{
	unsigned long failed;

	__atomic_store_n(&armed, false, __ATOMIC_SEQ_CST);
	failed = __atomic_load_n(&num_failed, __ATOMIC_RELAXED);
	for (int i = 0; ret_counts && i < NTH_KINDS; i++)
		ret_counts->of[i] = __atomic_load_n(&nums[i], __ATOMIC_RELAXED);
	if (ret_counts)
		ret_counts->failed = failed;
	return failed;
}

EXPORT const char *nth_last(void)
{
	return last;
}

/*
 * LeakSanitizer knows the dynamic linker's memory by its caller, which is a
 * function of ours here.
 */
EXPORT const char *__lsan_default_suppressions(void);
EXPORT const char *__lsan_default_suppressions(void)
{
	return "leak:ld-linux\nleak:allocate_dtv\n";
}

/* ------------------------------------------------------------------------
 * From the environment, and the report.
 */

__attribute__((constructor)) static void begin(void)
{
	const char *kind = getenv("NTH_KIND"), *from = getenv("NTH_FAIL");
	const char *count = getenv("NTH_COUNT"), *in = getenv("NTH_IN");
	enum nth_kind which = NTH_ANY;

	report = getenv("NTH_REPORT");
	if (in)
		files = in;
	if (!from && !report)
		return;
	for (int i = 0; kind && i <= NTH_KINDS; i++)
		if (!strcmp(kind, kind_names[i]))
			which = (enum nth_kind)i;
	nth_arm(which, from ? strtoul(from, NULL, 10) : 0, count ? strtoul(count, NULL, 10) : 1);
}

__attribute__((destructor)) static void end(void)
{
	struct nth_counts counts;
	char text[256];
	int len;

	if (!report)
		return;
	(void)nth_disarm(&counts);
	len = snprintf(text, sizeof(text), "%d counts", (int)getpid());
	for (int i = 0; i < NTH_KINDS; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " %s %lu", kind_names[i],
				counts.of[i]);
	text[len++] = '\n';
	write_report(text, (size_t)len);
}

/* ------------------------------------------------------------------------
 * Memory.  dlsym() may allocate before malloc() is known: from a small buffer,
 * which is never given back.
 */

static _Alignas(16) char early[16384];
static size_t early_used;		/* atomic */

static bool is_early(const void *memory)
{
	return (uintptr_t)memory - (uintptr_t)early < sizeof(early);
}

static void *early_alloc(size_t size)
{
	size_t rounded = ((size + 15) & ~(size_t)15) + 16;
	size_t end_at = __atomic_add_fetch(&early_used, rounded, __ATOMIC_RELAXED);
	char *memory = early + end_at - rounded;

	if (end_at > sizeof(early))
		abort();
	memcpy(memory, &size, sizeof(size));
	return memory + 16;
}

static size_t early_size(const void *memory)
{
	size_t size;

	memcpy(&size, (const char *)memory - 16, sizeof(size));
	return size;
}

static __thread bool looking;

/* The C library's, or a sanitizer's.  NULL while it is being looked for. */
static void *next(void **slot, const char *name)
{
	void *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

	if (found || looking)
		return found;
	looking = true;
	found = dlsym(RTLD_NEXT, name);
	looking = false;
	__atomic_store_n(slot, found, __ATOMIC_RELEASE);
	return found;
}

#define REAL(ret, name, ...)									\
	typedef ret (*name##_call)(__VA_ARGS__);							\
	static void *slot_of_##name;								\
	static name##_call real_##name(void)							\
	{											\
		void *found = next(&slot_of_##name, #name);					\
		name##_call fn;									\
												\
		memcpy(&fn, &found, sizeof(fn));						\
		return fn;									\
	}

/*
 * A sanitizer looks up names before its functions can be looked up.  It has
 * them under names of its own, too.
 */
#define REAL_OR_SANITIZERS(ret, name, ...)							\
	extern ret __interceptor_##name(__VA_ARGS__) __attribute__((weak));			\
	REAL(ret, name, __VA_ARGS__)								\
	static name##_call memory_##name(void)							\
	{											\
		return __interceptor_##name ? __interceptor_##name : real_##name();		\
	}

REAL_OR_SANITIZERS(void *, malloc, size_t)
REAL_OR_SANITIZERS(void *, calloc, size_t, size_t)
REAL_OR_SANITIZERS(void *, realloc, void *, size_t)
REAL_OR_SANITIZERS(void, free, void *)
REAL_OR_SANITIZERS(void *, aligned_alloc, size_t, size_t)
REAL_OR_SANITIZERS(int, posix_memalign, void **, size_t, size_t)

EXPORT void *malloc(size_t size)
{
	malloc_call real = memory_malloc();

	if (fails(NTH_ALLOC, "malloc", CALLER))
		return NULL;
	return real ? real(size) : early_alloc(size);
}

EXPORT void *calloc(size_t num, size_t size)
{
	calloc_call real = memory_calloc();

	if (fails(NTH_ALLOC, "calloc", CALLER))
		return NULL;
	return real ? real(num, size) : early_alloc(num * size);
}

EXPORT void free(void *memory)
{
	free_call real = memory_free();

	if (real && !is_early(memory))
		real(memory);
}

EXPORT void *realloc(void *memory, size_t size)
{
	realloc_call real = memory_realloc();
	void *moved;

	if (fails(NTH_ALLOC, "realloc", CALLER))
		return NULL;
	if (real && !is_early(memory))
		return real(memory, size);
	moved = real ? real(NULL, size) : early_alloc(size);
	if (moved && memory)
		memcpy(moved, memory, early_size(memory) < size ? early_size(memory) : size);
	return moved;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	if (fails(NTH_ALLOC, "aligned_alloc", CALLER))
		return NULL;
	return memory_aligned_alloc()(alignment, size);
}

EXPORT int posix_memalign(void **ret_memory, size_t alignment, size_t size)
{
	if (fails(NTH_ALLOC, "posix_memalign", CALLER))
		return ENOMEM;
	return memory_posix_memalign()(ret_memory, alignment, size);
}

static char *copy(const char *text, size_t len)
{
	char *memory = memory_malloc()(len + 1);

	if (memory) {
		memcpy(memory, text, len);
		memory[len] = '\0';
	}
	return memory;
}

#undef strdup
#undef strndup
EXPORT char *strdup(const char *text)
{
	return fails(NTH_ALLOC, "strdup", CALLER) ? NULL : copy(text, strlen(text));
}

EXPORT char *strndup(const char *text, size_t max)
{
	return fails(NTH_ALLOC, "strndup", CALLER) ? NULL : copy(text, strnlen(text, max));
}

static int vprint(char **ret_text, const char *format, va_list args)
{
	bool was = inside;
	int len;

	inside = true;
	len = vasprintf(ret_text, format, args);
	inside = was;
	return len;
}

EXPORT int asprintf(char **ret_text, const char *format, ...)
{
	va_list args;
	int len = -1;

	if (fails(NTH_ALLOC, "asprintf", CALLER))
		return -1;
	va_start(args, format);
	len = vprint(ret_text, format, args);
	va_end(args);
	return len;
}

/* What a build with _FORTIFY_SOURCE calls. */
EXPORT int __asprintf_chk(char **ret_text, int flag, const char *format, ...);
EXPORT int __asprintf_chk(char **ret_text, int flag, const char *format, ...)
{
	va_list args;
	int len = -1;

	(void)flag;
	if (fails(NTH_ALLOC, "asprintf", CALLER))
		return -1;
	va_start(args, format);
	len = vprint(ret_text, format, args);
	va_end(args);
	return len;
}

/* ------------------------------------------------------------------------
 * Descriptors, mappings, threads, the disk.
 */

#define SIMPLE(kind, failure, ret, name, params, ...)						\
	EXPORT ret name params									\
	{											\
		return fails(kind, #name, CALLER) ? (failure) : real_##name()(__VA_ARGS__);	\
	}

REAL(int, open, const char *, int, ...)
REAL(int, open64, const char *, int, ...)
REAL(int, openat, int, const char *, int, ...)
REAL(int, openat64, int, const char *, int, ...)

/* A mode that was not given is not looked at. */
#define MODE(after)										\
	va_list args;										\
	mode_t mode;										\
	va_start(args, after);									\
	mode = va_arg(args, mode_t);								\
	va_end(args)

EXPORT int open(const char *path, int flags, ...)
{
	MODE(flags);
	return fails(NTH_DESCRIPTOR, "open", CALLER) ? -1 : real_open()(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	MODE(flags);
	return fails(NTH_DESCRIPTOR, "open", CALLER) ? -1 : real_open64()(path, flags, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
	MODE(flags);
	return fails(NTH_DESCRIPTOR, "openat", CALLER) ? -1 : real_openat()(folder, path, flags, mode);
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
	MODE(flags);
	return fails(NTH_DESCRIPTOR, "openat", CALLER) ? -1
						       : real_openat64()(folder, path, flags, mode);
}

typedef int (*entry_filter)(const struct dirent *entry);
typedef int (*entry_order)(const struct dirent **a, const struct dirent **b);
#define SCANDIR_PARAMS (const char *path, struct dirent ***list, entry_filter filter, entry_order order)

REAL(FILE *, fopen, const char *, const char *)
REAL(FILE *, fopen64, const char *, const char *)
REAL(DIR *, opendir, const char *)
REAL(int, scandir, const char *, struct dirent ***, entry_filter, entry_order)
REAL(int, socket, int, int, int)
REAL(int, eventfd, unsigned int, int)
REAL(int, epoll_create1, int)
REAL(int, memfd_create, const char *, unsigned int)
REAL(int, pipe2, int *, int)
REAL(int, dup, int)
REAL(void *, mmap, void *, size_t, int, int, int, off_t)
REAL(void *, mmap64, void *, size_t, int, int, int, off64_t)
REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
REAL(int, ftruncate, int, off_t)
REAL(int, ftruncate64, int, off64_t)
REAL(int, posix_fallocate, int, off_t, off_t)
REAL(int, mkdir, const char *, mode_t)

SIMPLE(NTH_DESCRIPTOR, NULL, FILE *, fopen, (const char *path, const char *mode), path, mode)
SIMPLE(NTH_DESCRIPTOR, NULL, FILE *, fopen64, (const char *path, const char *mode), path, mode)
SIMPLE(NTH_DESCRIPTOR, NULL, DIR *, opendir, (const char *path), path)
SIMPLE(NTH_DESCRIPTOR, -1, int, scandir, SCANDIR_PARAMS, path, list, filter, order)
SIMPLE(NTH_DESCRIPTOR, -1, int, socket, (int family, int type, int protocol), family, type, protocol)
SIMPLE(NTH_DESCRIPTOR, -1, int, eventfd, (unsigned int count, int flags), count, flags)
SIMPLE(NTH_DESCRIPTOR, -1, int, epoll_create1, (int flags), flags)
SIMPLE(NTH_DESCRIPTOR, -1, int, memfd_create, (const char *name, unsigned int flags), name, flags)
SIMPLE(NTH_DESCRIPTOR, -1, int, pipe2, (int fds[2], int flags), fds, flags)
SIMPLE(NTH_DESCRIPTOR, -1, int, dup, (int fd), fd)
SIMPLE(NTH_MAP, MAP_FAILED, void *, mmap, (void *at, size_t len, int prot, int flags, int fd,
	off_t offset), at, len, prot, flags, fd, offset)
SIMPLE(NTH_MAP, MAP_FAILED, void *, mmap64, (void *at, size_t len, int prot, int flags, int fd,
	off64_t offset), at, len, prot, flags, fd, offset)
SIMPLE(NTH_THREAD, EAGAIN, int, pthread_create, (pthread_t *thread, const pthread_attr_t *attr,
	void *(*start)(void *), void *arg), thread, attr, start, arg)
SIMPLE(NTH_DISK, -1, int, ftruncate, (int fd, off_t len), fd, len)
SIMPLE(NTH_DISK, -1, int, ftruncate64, (int fd, off64_t len), fd, len)
SIMPLE(NTH_DISK, ENOSPC, int, posix_fallocate, (int fd, off_t from, off_t len), fd, from, len)
SIMPLE(NTH_DISK, -1, int, mkdir, (const char *path, mode_t mode), path, mode)
