/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_devices.c - the devices that come with polycm.  What each is to show and to refuse
 * is read from its file: the limit is accepted, one more is refused with one line of log.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "caught.h"
#include "pair.h"

#define FEW 3			/* of each kind of object, in a copy of the file */
#define MISSING UINT64_MAX
#define MOST_SGE 32		/* that the simulator has */

static char folder[512];

/* The file, and its copy with few objects of each kind. */
static char text[16384], few_path[] = "/tmp/polycm-device.XXXXXX";

static const struct few {
	const char *line;
	unsigned int value;
} few[] = {
	{ "max_qp", FEW }, { "max_cq", FEW }, { "max_mr", FEW }, { "max_pd", FEW },
	{ "max_srq", FEW }, { "max_mr_size", 4096 },
};

static struct {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	const char *address;
} on;

/* --- The file. --- */

static void read_file(const char *name)
{
	char path[1024];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	assert_non_null(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	assert_int_equal(fclose(file), 0);
}

static bool is_line(const char *line, const char *name)
{
	size_t len = strlen(name);

	line += strspn(line, " \t");
	return !strncmp(line, name, len) && line[len] == ':';
}

/* The first one of that name, from its value on; NULL: the file does not have it. */
static const char *value_of(const char *name)
{
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		if (is_line(line, name))
			return strchr(line, ':') + 1;
		if (!strchr(line, '\n'))
			break;
	}
	return NULL;
}

static uint64_t number_of(const char *name)
{
	const char *value = value_of(name);
	uint64_t number = value ? strtoull(value, NULL, 0) : MISSING;

	return value && strstr(name, "_sge") && number > MOST_SGE ? MOST_SGE : number;
}

static void write_few(void)
{
	FILE *file = fopen(few_path, "we");
	const char *line = text;

	assert_non_null(file);
	while (*line) {
		size_t len = strcspn(line, "\n"), i = 0;

		while (i < ARRAY_LEN(few) && !is_line(line, few[i].line))
			i++;
		if (i == ARRAY_LEN(few))
			fprintf(file, "%.*s\n", (int)len, line);
		/* Those without SRQs stay so. */
		for (i = 0; is_line(line, "hca_id") && i < ARRAY_LEN(few); i++)
			fprintf(file, "%s: %u\n", few[i].line,
				number_of(few[i].line) ? few[i].value : 0);
		line += len + (line[len] == '\n');
	}
	assert_int_equal(fclose(file), 0);
}

/* --- Calls: each returns 0 or an errno, and what it logs is in `said'. --- */

static const char *said;

#define CAUGHT(result, call)                                                                       \
	do {                                                                                       \
		catch_stderr();                                                                    \
		errno = 0;                                                                         \
		result = (call);                                                                   \
		said = caught_text();                                                              \
	} while (0)

static int destroyed(int err)
{
	assert_int_equal(err, 0);
	return 0;
}

static int cq_of(unsigned int cqe, unsigned int vector)
{
	struct ibv_cq *cq;

	CAUGHT(cq, ibv_create_cq(on.verbs, (int)cqe, NULL, NULL, (int)vector));
	return cq ? destroyed(ibv_destroy_cq(cq)) : errno;
}

static int qp_of(unsigned int wr, unsigned int sge)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = on.cq, .recv_cq = on.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = wr, .max_recv_wr = 1, .max_send_sge = sge, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	CAUGHT(qp, ibv_create_qp(on.pd, &attr));
	return qp ? destroyed(ibv_destroy_qp(qp)) : errno;
}

static int srq_of(unsigned int wr, unsigned int sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wr, .max_sge = sge } };
	struct ibv_srq *srq;

	CAUGHT(srq, ibv_create_srq(on.pd, &attr));
	return srq ? destroyed(ibv_destroy_srq(srq)) : errno;
}

/* The id is gone before the other side answers: it is the call that counts. */
static int connect_with(unsigned int responder, unsigned int initiator)
{
	struct rdma_conn_param param = {
		.responder_resources = (uint8_t)responder, .initiator_depth = (uint8_t)initiator,
	};
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct sockaddr_in own = pair_address(on.address, 0);
	struct sockaddr_in other = pair_address(on.address, SERVER_PORT);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_event_channel *unread = rdma_create_event_channel();
	struct rdma_cm_id *id, *listener;
	int err;

	assert_int_equal(rdma_create_id(unread, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, (void *)&other), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, (void *)&own, (void *)&other, 1000), 0);
	pair_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	pair_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_create_qp(id, NULL, &qp), 0);
	CAUGHT(err, rdma_connect(id, &param) ? errno : 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(unread);
	return err;
}

static int qp_wr(unsigned int n) { return qp_of(n, 1); }
static int qp_sge(unsigned int n) { return qp_of(1, n); }
static int srq_wr(unsigned int n) { return srq_of(n, 1); }
static int srq_sge(unsigned int n) { return srq_of(1, n); }
static int cqe(unsigned int n) { return cq_of(n, 0); }
static int vector(unsigned int n) { return cq_of(1, n - 1); }
static int responder(unsigned int n) { return connect_with(n, 1); }
static int initiator(unsigned int n) { return connect_with(1, n); }

static int gid(unsigned int n)
{
	union ibv_gid found;
	int err;

	CAUGHT(err, ibv_query_gid(on.verbs, 1, (int)n - 1, &found) ? errno : 0);
	return err;
}

static int pkey(unsigned int n)
{
	__be16 found;
	int err;

	CAUGHT(err, ibv_query_pkey(on.verbs, 1, (int)n - 1, &found) ? errno : 0);
	return err;
}

static int region(unsigned int len)
{
	static char memory[4097];
	struct ibv_mr *mr;

	CAUGHT(mr, ibv_reg_mr(on.pd, memory, len, 0));
	return mr ? destroyed(ibv_dereg_mr(mr)) : errno;
}

static const struct row {
	const char *line;
	int (*call)(unsigned int n);
	unsigned int most;		/* that an argument can be */
} rows[] = {
	{ "max_qp_wr", qp_wr, INT32_MAX },
	{ "max_sge", qp_sge, INT32_MAX },
	{ "max_cqe", cqe, INT32_MAX },
	{ "max_srq_wr", srq_wr, INT32_MAX },
	{ "max_srq_sge", srq_sge, INT32_MAX },
	{ "max_qp_rd_atom", responder, UINT8_MAX },
	{ "max_qp_init_rd_atom", initiator, UINT8_MAX },
	{ "num_comp_vectors", vector, INT32_MAX },
	{ "gid_tbl_len", gid, INT32_MAX },
	{ "pkey_tbl_len", pkey, INT32_MAX },
};

/* --- Objects, in the copy. --- */

static void *make_pd(void) { return ibv_alloc_pd(on.verbs); }
static void *make_cq(void) { return ibv_create_cq(on.verbs, 1, NULL, NULL, 0); }

static void *make_mr(void)
{
	static char memory[8];

	return ibv_reg_mr(on.pd, memory, sizeof(memory), 0);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(on.pd, &attr);
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = on.cq, .recv_cq = on.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(on.pd, &attr);
}

static int end_pd(void *pd) { return ibv_dealloc_pd(pd); }
static int end_cq(void *cq) { return ibv_destroy_cq(cq); }
static int end_mr(void *mr) { return ibv_dereg_mr(mr); }
static int end_srq(void *srq) { return ibv_destroy_srq(srq); }
static int end_qp(void *qp) { return ibv_destroy_qp(qp); }

static const struct kind {
	const char *line;
	unsigned int present;		/* those of `on' */
	void *(*make)(void);
	int (*end)(void *object);
} kinds[] = {
	{ "max_pd", 1, make_pd, end_pd }, { "max_cq", 1, make_cq, end_cq },
	{ "max_mr", 0, make_mr, end_mr }, { "max_srq", 0, make_srq, end_srq },
	{ "max_qp", 0, make_qp, end_qp },
};

/* --- Each device. --- */

static struct ibv_context *open_nth(unsigned int n)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs;

	assert_non_null(list);
	verbs = ibv_open_device(list[n]);
	ibv_free_device_list(list);
	assert_non_null(verbs);
	return verbs;
}

static void open_device(unsigned int n, const char *address)
{
	on.address = address;
	on.verbs = open_nth(n);
	on.pd = ibv_alloc_pd(on.verbs);
	on.cq = ibv_create_cq(on.verbs, 1, NULL, NULL, 0);
	assert_true(on.pd && on.cq);
}

static void close_device(void)
{
	assert_int_equal(ibv_destroy_cq(on.cq) | ibv_dealloc_pd(on.pd), 0);
	assert_int_equal(ibv_close_device(on.verbs), 0);
}

static unsigned int num_lines(const char *log)
{
	unsigned int num = 0;

	for (; *log; log += strcspn(log, "\n") + 1)
		num++;
	return num;
}

static void check(const char *name, const char *line, uint64_t n, int err, int expected)
{
	if (err != expected)
		fail_msg("%s: %s %llu: %s in place of %s", name, line, (unsigned long long)n,
			 strerror(err), strerror(expected));
	if (num_lines(said) != !!expected)
		fail_msg("%s: %s %llu: \"%s\"", name, line, (unsigned long long)n, said);
}

static void try_call(const char *name, const struct row *row, uint64_t n, int expected)
{
	check(name, row->line, n, row->call((unsigned int)n), expected);
}

static void try_row(const char *name, const struct row *row)
{
	uint64_t limit = number_of(row->line);
	bool lacks = !strncmp(row->line, "max_srq", 7) && !number_of("max_srq");

	if (lacks)
		return try_call(name, row, 1, EOPNOTSUPP);
	if (limit == MISSING)
		return;
	if (limit)
		try_call(name, row, limit, 0);
	if (limit < row->most)
		try_call(name, row, limit + 1, EINVAL);
}

static void try_kind(const char *name, const struct kind *kind)
{
	/* rxe has another errno than adapters and siw. */
	int expected = number_of("vendor_id") == 0xffffff ? EINVAL : ENOMEM;
	void *made[FEW], *more;
	unsigned int num = 0;

	if (!number_of(kind->line))
		return;
	while (num < FEW - kind->present) {
		made[num] = kind->make();
		assert_non_null(made[num++]);
	}
	CAUGHT(more, kind->make());
	check(name, kind->line, FEW + 1, more ? 0 : errno, expected);
	while (num)
		assert_int_equal(kind->end(made[--num]), 0);
}

static void load(const char *devices)
{
	char path[] = "/tmp/polycm-devices.XXXXXX";
	int fd = mkstemp(path);
	FILE *file;

	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	fprintf(file, "nodes = ( { name = \"a\"; devices = ( %s ); } );\n", devices);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(polycm_sim_load(path), 0);
	assert_int_equal(unlink(path), 0);
}

static void keeps_its_limits(const char *name)
{
	static const struct row mr_size = { "max_mr_size", region, INT32_MAX };
	char both[400];

	read_file(name);
	write_few();
	snprintf(both, sizeof(both), "{ device = \"%s\"; addresses = \"10.0.0.1/24\"; }, "
		 "{ device = \"%s\"; addresses = \"10.0.1.1/24\"; }", name, few_path);
	load(both);

	open_device(0, "10.0.0.1");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		try_row(name, &rows[i]);
	close_device();

	open_device(1, "10.0.1.1");
	try_call(name, &mr_size, 4096, 0);
	try_call(name, &mr_size, 4097, EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		try_kind(name, &kinds[i]);
	close_device();
	assert_int_equal(polycm_sim_destroy(), 0);
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void for_each_device(void (*fn)(const char *name))
{
	struct dirent **entries;
	int num = scandir(folder, &entries, visible, alphasort);

	assert_true(num >= 5);
	for (int i = 0; i < num; i++) {
		fn(entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

static void limits_are_accepted_and_one_more_is_refused(void **state)
{
	(void)state;
	for_each_device(keeps_its_limits);
}

/* --- All of them in one process. --- */

#define SHOWN(member) { #member, offsetof(struct ibv_device_attr, member), \
			sizeof(((struct ibv_device_attr *)0)->member) }

static const struct {
	const char *line;
	size_t offset, size;
} shown[] = {
	SHOWN(vendor_id), SHOWN(vendor_part_id), SHOWN(hw_ver), SHOWN(max_mr_size), SHOWN(max_qp),
	SHOWN(max_qp_wr), SHOWN(max_sge), SHOWN(max_sge_rd), SHOWN(max_cq), SHOWN(max_cqe),
	SHOWN(max_mr), SHOWN(max_pd), SHOWN(max_qp_rd_atom), SHOWN(max_res_rd_atom),
	SHOWN(max_qp_init_rd_atom), SHOWN(max_mw), SHOWN(max_mcast_grp), SHOWN(max_mcast_qp_attach),
	SHOWN(max_ah), SHOWN(max_srq), SHOWN(max_srq_wr), SHOWN(max_srq_sge),
};

static char all_devices[4096];
static unsigned int num_devices;

static void add_device(const char *name)
{
	size_t len = strlen(all_devices);

	snprintf(all_devices + len, sizeof(all_devices) - len,
		 "%s{ device = \"%s\"; addresses = \"10.0.%u.1/24\"; }", len ? ", " : "", name,
		 num_devices++);
}

static void shows_its_file(const char *name)
{
	struct ibv_context *verbs = open_nth(num_devices++);
	struct ibv_device_attr attr;
	uint64_t value, expected;

	read_file(name);
	assert_int_equal(ibv_query_device(verbs, &attr), 0);
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		value = 0;
		memcpy(&value, (char *)&attr + shown[i].offset, shown[i].size);
		expected = number_of(shown[i].line);
		if (expected != MISSING && value != expected)
			fail_msg("%s: %s is %llu in place of %llu", name, shown[i].line,
				 (unsigned long long)value, (unsigned long long)expected);
	}
	assert_int_equal(ibv_close_device(verbs), 0);
}

static void each_shows_its_file(void **state)
{
	(void)state;
	for_each_device(add_device);
	load(all_devices);
	num_devices = 0;
	for_each_device(shows_its_file);
	assert_int_equal(polycm_sim_destroy(), 0);
}

/* --- By name or by file, without a scenario. --- */

static void calls_take_devices(void **state)
{
	static const struct {
		const char *kind;
		int error;
	} wrong[] = {
		{ "connectx", EINVAL }, { "", EINVAL }, { "/dev/null", EINVAL },
		{ "/nowhere/device", ENOENT },
	};
	struct polycm_sim_node *node;
	char path[PATH_MAX + 8];

	(void)state;
	snprintf(path, sizeof(path), "%s/e810-iwarp", folder);
	assert_int_equal(polycm_sim_create(1), 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_errno(polycm_sim_node_add("a", wrong[i].kind, "10.0.0.1/24", &node),
			     wrong[i].error);
	assert_int_equal(polycm_sim_node_add("a", "connectx-5", "10.0.0.1/24", &node), 0);
	assert_errno(polycm_sim_device_add(node, "connectx-5", "10.0.0.1/24", NULL, NULL), EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_errno(polycm_sim_device_add(node, wrong[i].kind, "10.0.1.1/24", NULL, NULL),
			     wrong[i].error);
	assert_int_equal(polycm_sim_device_add(node, path, "10.0.1.1/24", NULL, NULL), 0);
	read_file("connectx-5");
	open_device(0, "10.0.0.1");
	try_row("connectx-5", &rows[0]);
	close_device();
	read_file("e810-iwarp");
	open_device(1, "10.0.1.1");
	try_row("e810-iwarp", &rows[0]);
	close_device();
	assert_int_equal(polycm_sim_destroy(), 0);
}

static int set_up(void **state)
{
	int fd = mkstemp(few_path);

	snprintf(folder, sizeof(folder), "%s/providers/sim/devices", getenv("abs_top_srcdir"));
	setenv("POLYCM_LOG", "warn", 1);
	return fd < 0 || close(fd) ? -1 : pair_group_setup(state);
}

static int clean_up(void **state)
{
	(void)state;
	return unlink(few_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_accepted_and_one_more_is_refused),
		cmocka_unit_test(each_shows_its_file),
		cmocka_unit_test(calls_take_devices),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
