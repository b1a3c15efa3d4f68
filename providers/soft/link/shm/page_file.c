/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/page_file.c - see page_file.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "held_signals.h"
#include "page_file.h"
#include "pages.h"

static struct {
	int error;
	int fd;
	struct sim_file_id id;		/* inode 0: the file is not made */
} file;

/* Else a signal would say so, too. */
static bool may_write(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= SIM_PAGES_FILE;
}

/* Not one of the first three, which the program may have closed and will use. */
static int make(void)
{
	struct stat st;
	int fd, r = 0;

	fd = memfd_create("polycm-pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	file.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (file.fd < 0 || ftruncate(fd, SIM_PAGES_FILE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
	    fstat(fd, &st) < 0)
		r = -errno;
	else
		file.id = sim_file_id(&st);
	if (r < 0 && file.fd >= 0)
		close(file.fd);
	close(fd);
	return r;
}

int sim_page_file_make(void)
{
	if (!file.id.inode && !file.error)
		file.error = make();
	return file.error;
}

/* The descriptor, or a negative errno. */
static int descriptor(void)
{
	struct sim_file_id id;
	struct stat st;

	if (!file.id.inode || fstat(file.fd, &st) < 0)
		return -EBADF;
	id = sim_file_id(&st);
	return sim_file_same(&id, &file.id) ? file.fd : -ESTALE;
}

void sim_page_file_close(void)
{
	if (descriptor() >= 0)
		close(file.fd);
	memset(&file, 0, sizeof(file));
}

const struct sim_file_id *sim_page_file_id(int *ret_fd)
{
	*ret_fd = file.fd;
	return file.id.inode ? &file.id : NULL;
}

void sim_page_file_punch(uint64_t at, uint64_t length)
{
	int fd = descriptor();

	if (fd >= 0)
		(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
				(off_t)length);
}

static int reserve(int fd, uint64_t at, size_t length)
{
	int r;

	do
		r = fallocate(fd, 0, (off_t)at, (off_t)length);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int write_all(int fd, const char *from, size_t length, uint64_t at)
{
	ssize_t n;

	for (; length; length -= (size_t)n, from += n, at += (uint64_t)n) {
		n = pwrite(fd, from, length, (off_t)at);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

static bool map_at(uintptr_t from, size_t length, int prot, int fd, uint64_t at)
{
	return mmap((void *)from, length, prot, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)at) !=
	       MAP_FAILED;
}

int sim_page_file_take(uintptr_t from, size_t length, uint64_t at)
{
	int fd = descriptor(), r;
	unsigned char in_core;
	sigset_t old;

	if (fd < 0)
		return fd;
	if (!may_write())
		return -EFBIG;
	r = reserve(fd, at, length);
	if (r < 0)
		return r;
	hold_signals(&old);
	r = write_all(fd, (const char *)from, length, at);
	/* The kernel may have unmapped the memory and then had none to map the file: it has soon. */
	while (!r && !map_at(from, length, PROT_READ | PROT_WRITE, fd, at))
		if (!mincore((void *)from, 1, &in_core))
			r = -errno;
	release_signals(&old);
	if (r < 0)
		sim_page_file_punch(at, length);
	return r;
}

static bool read_file(int fd, char *to, size_t length, uint64_t at)
{
	ssize_t n;

	for (; fd >= 0 && length; length -= (size_t)n, to += n, at += (uint64_t)n) {
		n = pread(fd, to, length, (off_t)at);
		if (n <= 0)
			return false;
	}
	return !length;
}

/* Another thread may unmap it meanwhile: a system call says so. */
static bool read_memory(char *to, uintptr_t from, size_t length)
{
	struct iovec local = { .iov_base = to, .iov_len = length };
	struct iovec remote = { .iov_base = (void *)from, .iov_len = length };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)length;
}

void *sim_page_file_copy(const struct sim_mapping *piece)
{
	size_t length = piece->to - piece->from;
	char *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return NULL;
	if (read_file(descriptor(), copy, length, piece->offset) ||
	    read_memory(copy, piece->from, length))
		return copy;
	munmap(copy, length);
	return NULL;
}

int sim_page_file_put(const struct sim_mapping *piece, void *copy)
{
	size_t length = piece->to - piece->from;
	int r = 0, fd = descriptor();
	unsigned char in_core;

	if (mprotect(copy, length, piece->prot) < 0 ||
	    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)piece->from) ==
		    MAP_FAILED)
		r = -errno;
	if (!r)
		return 0;
	if (fd >= 0 && mincore((void *)piece->from, 1, &in_core))
		(void)map_at(piece->from, length, piece->prot, fd, piece->offset);
	munmap(copy, length);
	return r;
}
