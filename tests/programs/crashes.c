/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crashes.c WHERE SIGNAL - a program whose memory is bad, which libpolycm finds: in a call ("call"),
 * when a message comes ("poll", "event", "spin": how the program waits for it), or when it takes
 * memory for a timer ("timer").  Its own handler ends it, with the signal's number and 100.
 * crashes.c threads - which show what they block.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "member.h"

#define PAGE 4096
#define ACCESS (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RECEIVES (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define SENDS (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP };

static struct ibv_context *context;
static struct ibv_comp_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void end(int signal)
{
	_exit(100 + signal);
}

/* ------------------------------------------------------------------------
 * Memory of a heap that is broken.
 */

static const char *broken;	/* how; NULL: not yet */

void *__libc_calloc(size_t num, size_t size);

void *calloc(size_t num, size_t size)
{
	const char *how = broken;

	broken = NULL;
	if (!how)
		return __libc_calloc(num, size);
	if (!strcmp(how, "ABRT"))
		abort();
	else if (!strcmp(how, "SEGV"))
		*(volatile char *)NULL = 1;
#ifdef __x86_64__
	else if (!strcmp(how, "FPE"))
		__asm__ volatile("xor %%ecx, %%ecx; mov $1, %%eax; cltd; idiv %%ecx" ::
				 : "eax", "ecx", "edx", "cc");
	else if (!strcmp(how, "ILL"))
		__asm__ volatile("ud2");
	else if (!strcmp(how, "TRAP"))
		__asm__ volatile("int3");
#endif
	exit(2);
}

static void set_timer(const char *signal)
{
	timer_t timer;

	broken = signal;
	CHECK(!timer_create(CLOCK_MONOTONIC, NULL, &timer));
}

/* ------------------------------------------------------------------------
 * A message into memory that is gone.
 */

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 1, 1, 1, 1, 64 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	CHECK(qp);
	return qp;
}

static void connect_to(struct ibv_qp *qp, const struct ibv_qp *to)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CHECK(!ibv_modify_qp(qp, &attr, ACCESS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.ah_attr = { .is_global = 1, .grh.hop_limit = 1, .port_num = 1 },
	};
	CHECK(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid));
	CHECK(!ibv_modify_qp(qp, &attr, RECEIVES));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7 };
	CHECK(!ibv_modify_qp(qp, &attr, SENDS));
}

static char *map(int fd)
{
	char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS :
			    MAP_SHARED, fd, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static void receive_into(struct ibv_qp *qp, const char *signal)
{
	int fd = strcmp(signal, "BUS") ? -1 : memfd_create("crashes", 0);
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .length = PAGE };
	struct ibv_mr *mr;
	char *memory;

	CHECK(fd < 0 || !ftruncate(fd, PAGE));
	memory = map(fd);
	mr = ibv_reg_mr(pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	sge.addr = (uintptr_t)memory;
	sge.lkey = mr->lkey;
	wr.sg_list = &sge;
	CHECK(!ibv_post_recv(qp, &wr, &bad));
	if (!strcmp(signal, "SEGV"))
		CHECK(!mprotect(memory, PAGE, PROT_NONE));
	else if (fd >= 0)
		CHECK(!ftruncate(fd, 0));
}

static void send_from(struct ibv_qp *qp, const void *memory)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = 64 };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
	}, *bad;

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void await(const char *how)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *its;
	struct ibv_wc wc;
	void *unused;

	CHECK(!ibv_req_notify_cq(cq, 0));
	if (!strcmp(how, "poll"))
		CHECK(poll(&pfd, 1, -1) == 1);
	else if (strcmp(how, "spin"))
		CHECK(!ibv_get_cq_event(channel, &its, &unused));
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	CHECK(!wc.status);
}

/* ------------------------------------------------------------------------
 * What threads block.
 */

static unsigned long blocked_by(const char *thread)
{
	char path[300], line[100];
	unsigned long mask = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
	file = fopen(path, "re");
	CHECK(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "SigBlk: %lx", &mask) != 1)
		;
	(void)fclose(file);
	return mask;
}

/* How many block other signals, and none of these; the thread of main() blocks nothing. */
static void show_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int num = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
			CHECK(!(blocked_by(entry->d_name) >> (faults[i] - 1) & 1));
		num += blocked_by(entry->d_name) >> (SIGUSR1 - 1) & 1;
	}
	(void)closedir(dir);
	printf("%d threads take no signal\n", num);
}

int main(int argc, char **argv)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	const char *where = argc > 1 ? argv[1] : "", *signal = argc > 2 ? argv[2] : "";
	struct sigaction action = { .sa_handler = end };
	struct ibv_qp *from, *to;
	char *gone = map(-1), here[64] = "";

	CHECK(!mprotect(gone, PAGE, PROT_NONE));
	CHECK(devices && devices[0] && (context = ibv_open_device(devices[0])));
	CHECK((pd = ibv_alloc_pd(context)) && (channel = ibv_create_comp_channel(context)));
	CHECK((cq = ibv_create_cq(context, 2, NULL, channel, 0)));
	from = make_qp();
	to = make_qp();
	connect_to(from, to);
	connect_to(to, from);
	CHECK(!sigaction(SIGABRT, &action, NULL));
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		CHECK(!sigaction(faults[i], &action, NULL));
	if (!strcmp(where, "timer"))
		set_timer(signal);
	if (!strcmp(where, "call"))
		send_from(from, gone);
	receive_into(to, signal);
	send_from(from, here);
	await(where);
	show_threads();
	return 0;
}
