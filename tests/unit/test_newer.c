/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_newer.c - the ibv_* calls that came with later releases of libibverbs:
 * what a simulated device has not, buffers, and MRs of theirs.
 */
#include "config.h"

#include "tests/cmocka_all.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "core/verbs/shim.h"
#include "polycm/provider.h"

/* Headers of other releases declare more of them, or fewer. */
struct buffer;

struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct buffer *buf;
};

enum { IOVA = 1, ADDR = 2, FD = 4, FD_OFFSET = 8, DMAH = 16, BUF = 32, UNKNOWN = 64 };

struct ibv_pd *import_pd(struct ibv_context *context, uint32_t handle) __asm__("ibv_import_pd");
struct ibv_mr *import_mr(struct ibv_pd *pd, uint32_t handle) __asm__("ibv_import_mr");
struct ibv_dm *import_dm(struct ibv_context *context, uint32_t handle) __asm__("ibv_import_dm");
int export_dm(struct ibv_dm *dm) __asm__("ibv_dm_export_dmabuf_fd");
void unimport_pd(struct ibv_pd *pd) __asm__("ibv_unimport_pd");
void unimport_mr(struct ibv_mr *mr) __asm__("ibv_unimport_mr");
void *alloc_dmah(struct ibv_context *context, void *attr) __asm__("ibv_alloc_dmah");
int query_port_speed(struct ibv_context *context, uint32_t port,
		     uint64_t *speed) __asm__("ibv_query_port_speed");
int query_counter_caps(struct ibv_context *context, void *caps,
		       size_t size) __asm__("_ibv_query_comp_cntr_caps");
void *create_counter(struct ibv_context *context, void *attr) __asm__("ibv_create_comp_cntr");
int attach_counter(struct ibv_qp *qp, void *counter, void *attr) __asm__("ibv_qp_attach_comp_cntr");
void *alloc_buf(struct ibv_pd *pd, size_t size, struct buffer **buf) __asm__("ibv_alloc_buf");
void free_buf(struct buffer *buf) __asm__("ibv_free_buf");
int export_buf(struct buffer *buf) __asm__("ibv_export_buf_dmabuf_fd");
struct ibv_mr *reg_buf_mr(struct ibv_pd *pd, struct buffer *buf, void *addr, size_t length,
			  int access) __asm__("ibv_reg_buf_mr");
struct ibv_mr *reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr) __asm__("ibv_reg_mr_ex");

/* What the device was asked for last. */
static struct {
	void *addr;
	size_t length;
	uint64_t iova;
	unsigned int access;
} asked;

static struct ibv_mr mr;

static struct ibv_context *open_device(struct ibv_device *device)
{
	(void)device;
	return NULL;
}

static int close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			     unsigned int access)
{
	(void)pd;
	asked.addr = addr;
	asked.length = length;
	asked.iova = iova;
	asked.access = access;
	return &mr;
}

static const struct polycm_verbs verbs = {
	.size = sizeof(verbs),
	.open_device = open_device,
	.close_device = close_device,
	.reg_mr = reg_mr,
};

static struct polycm_verbs_device device = {.verbs = &verbs};
static struct ibv_context context = {.device = &device.device};
static struct ibv_pd pd = {.context = &context}, other_pd = {.context = &context};
static struct ibv_qp qp = {.context = &context};
static struct ibv_dm dm = {.context = &context};

static int setup(void **state)
{
	(void)state;
	mr.context = &context;
	return polycm_shim_adopt(&device, POLYCM_ABI_MINOR, NULL, 0);
}

static int teardown(void **state)
{
	(void)state;
	polycm_shim_release(&device);
	return 0;
}

static void what_no_simulated_device_has_is_not_supported(void **state)
{
	uint64_t speed;
	char caps[16];

	(void)state;
	errno = 0;
	assert_int_equal(export_dm(&dm), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(import_pd(&context, 1));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(import_mr(&pd, 1));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(import_dm(&context, 1));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(alloc_dmah(&context, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(create_counter(&context, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(query_port_speed(&context, 1, &speed), EOPNOTSUPP);
	assert_int_equal(query_counter_caps(&context, caps, sizeof(caps)), EOPNOTSUPP);
	assert_int_equal(attach_counter(&qp, NULL, NULL), EOPNOTSUPP);
	unimport_pd(&pd);
	unimport_mr(&mr);
}

static void a_buffer_is_memory_of_the_program(void **state)
{
	struct buffer *buf = NULL;
	char *addr = alloc_buf(&pd, 5000, &buf);

	(void)state;
	assert_non_null(addr);
	assert_non_null(buf);
	assert_int_equal((uintptr_t)addr % 4096, 0);
	memset(addr, 0x55, 5000);
	errno = 0;
	assert_int_equal(export_buf(buf), -1);
	assert_int_equal(errno, ENODATA);
	assert_ptr_equal(reg_buf_mr(&pd, buf, addr + 8, 4992, IBV_ACCESS_LOCAL_WRITE), &mr);
	assert_ptr_equal(asked.addr, addr + 8);
	assert_int_equal(asked.length, 4992);
	assert_int_equal(asked.iova, (uintptr_t)addr + 8);
	assert_int_equal(asked.access, IBV_ACCESS_LOCAL_WRITE);
	free_buf(buf);
}

#define BUF_SIZE 100

enum which { NONE, OURS, STRANGE };

static const struct mr_case {
	const char *what;
	uint64_t mask;
	ptrdiff_t offset; /* of the address in the buffer */
	size_t length;
	enum which buf;
	bool other_pd;
	int error;
} mr_cases[] = {
	{ "an address", ADDR, 0, 10, NONE, false, 0 },
	{ "an address and an IOVA", ADDR | IOVA, 0, 10, NONE, false, 0 },
	{ "a whole buffer", ADDR | BUF, 0, BUF_SIZE, OURS, false, 0 },
	{ "its last byte", ADDR | BUF, BUF_SIZE - 1, 1, OURS, false, 0 },
	{ "nothing", 0, 0, 10, NONE, false, EINVAL },
	{ "an address and an offset", ADDR | FD_OFFSET, 0, 10, NONE, false, EINVAL },
	{ "a descriptor", FD | FD_OFFSET | IOVA, 0, 10, NONE, false, EOPNOTSUPP },
	{ "a descriptor without IOVA", FD | FD_OFFSET, 0, 10, NONE, false, EINVAL },
	{ "a descriptor and an address", FD | FD_OFFSET | IOVA | ADDR, 0, 10, NONE, false, EINVAL },
	{ "a DMA handle", ADDR | DMAH, 0, 10, NONE, false, EOPNOTSUPP },
	{ "an unknown bit", ADDR | UNKNOWN, 0, 10, NONE, false, EOPNOTSUPP },
	{ "a buffer, and no address", BUF, 0, 10, OURS, false, EINVAL },
	{ "behind the buffer", ADDR | BUF, BUF_SIZE - 1, 2, OURS, false, EINVAL },
	{ "before the buffer", ADDR | BUF, -1, 2, OURS, false, EINVAL },
	{ "endless", ADDR | BUF, 1, SIZE_MAX, OURS, false, EINVAL },
	{ "a buffer and a descriptor", ADDR | BUF | FD, 0, 1, OURS, false, EINVAL },
	{ "a buffer of another PD", ADDR | BUF, 0, 1, OURS, true, EINVAL },
	{ "another device's buffer", ADDR | BUF, 0, 1, STRANGE, false, EINVAL },
};

static void an_mr_is_asked_for_by_its_mask(void **state)
{
	struct buffer *buf = NULL;
	char *addr = alloc_buf(&pd, BUF_SIZE, &buf);
	void *strange[4] = { addr };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mr_cases); i++) {
		const struct mr_case *c = &mr_cases[i];
		struct mr_init_attr attr = {
			.length = c->length,
			.comp_mask = c->mask,
			.iova = 7,
			.addr = addr + c->offset,
			.buf = c->buf == OURS ? buf : c->buf == STRANGE ? (void *)strange : NULL,
		};
		struct ibv_mr *got;

		print_message("%s\n", c->what);
		memset(&asked, 0, sizeof(asked));
		errno = 0;
		got = reg_mr_ex(c->other_pd ? &other_pd : &pd, &attr);
		assert_int_equal(errno, c->error);
		assert_ptr_equal(got, c->error ? NULL : &mr);
		assert_ptr_equal(asked.addr, c->error ? NULL : attr.addr);
		if (c->error)
			continue;
		assert_int_equal(asked.length, c->length);
		assert_int_equal(asked.iova, c->mask & IOVA ? 7 : (uintptr_t)attr.addr);
	}
	free_buf(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_simulated_device_has_is_not_supported),
		cmocka_unit_test(a_buffer_is_memory_of_the_program),
		cmocka_unit_test(an_mr_is_asked_for_by_its_mask),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
