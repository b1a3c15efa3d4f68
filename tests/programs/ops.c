/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops.c - every operation between two processes, each byte checked.
 *
 *	ops serve KIND				serves one client, beside those that it rejects
 *	ops ask ADDRESS KIND [sleep] OP...	repeats the operations until SIGUSR1, and then 10 times
 *
 * KIND: rc, srq (RC, with a shared receive queue at the server), ud.  OP: send, write, read,
 * atomic, imm (SEND and WRITE with immediate data), reject (once).  Each one alone (latency) and
 * many at a time (bandwidth).  sleep: wait for events, instead of polling.  Exit status 1: something
 * is wrong; 3: the peer or the way to it is gone.  The last line says what.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define PORT 7471
#define PATIENCE 240		/* seconds, for the whole */
#define TIMEOUT_MS 20000
#define MANY 16u
#define SLOT 600004u		/* several long packets, two chunks of a read, an odd end */
#define SLOT_UD 1024u		/* below any MTU */
#define GRH 40u
#define RECEIVES (MANY + 2)
#define AFTER 10u		/* rounds after the signal */
#define REPEAT_MS 5000		/* a datagram that got lost */

enum op { SEND = 1, WRITE, READ, ATOMIC, IMM, REJECT, END };
static const char *const names[] = { "", "send", "write", "read", "atomic", "imm", "reject" };

struct message {		/* the first bytes of what is sent */
	uint32_t op, sequence, index, of, size;
};

/* What each says of itself in its private data. */
struct greeting {
	char text[24];
	uint64_t address;
	uint32_t key;
	uint8_t srq, rejected;
} __attribute__((packed));
static const char client_text[] = "I am the client", server_text[] = "I am the server",
		  reject_text[] = "not now, try again";

static bool ud, with_srq, sleeps, asks;
static volatile sig_atomic_t stop;
static struct rdma_event_channel *events;
static struct rdma_cm_id *id;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static uint32_t their_qpn, their_qkey;
static struct greeting theirs;
static uint32_t slot = SLOT, repeated;
/* Sent from, received into, written and read by the peer, atomics, what these bring. */
static struct memory {
	uint8_t out[MANY][SLOT], in[RECEIVES][SLOT + GRH], target[MANY][SLOT], back[MANY][SLOT];
	uint64_t counter, old[MANY];
} *memory;

_Noreturn static void die(int status, const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(status);
}

static void need(bool good, const char *what)
{
	if (!good)
		die(1, what, strerror(errno));
}

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* ------------------------------------------------------------------------
 * Bytes.
 */

static uint32_t word_of(uint32_t sequence, uint32_t index, uint32_t i)
{
	return (sequence * 16777619u + index * 65599u) ^ (i * 2654435761u);
}

static void fill(uint8_t *bytes, uint32_t from, uint32_t size, uint32_t sequence, uint32_t index)
{
	for (uint32_t i = from; i + 4 <= size; i += 4) {
		uint32_t word = word_of(sequence, index, i);

		memcpy(bytes + i, &word, 4);
	}
}

static void verify(const uint8_t *bytes, uint32_t from, uint32_t size, uint32_t sequence,
		   uint32_t index, const char *what)
{
	for (uint32_t i = from; i + 4 <= size; i += 4) {
		uint32_t word = word_of(sequence, index, i), got;

		memcpy(&got, bytes + i, 4);
		if (got == word)
			continue;
		printf("byte %u of %u, message %u: %08x instead of %08x\n", i, size, index, got, word);
		die(1, what, "wrong data");
	}
}

/* ------------------------------------------------------------------------
 * Completions.
 */

static void post_receive(uint64_t number)
{
	struct ibv_sge sge = { (uintptr_t)memory->in[number], slot + GRH, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(id->qp, &wr, &bad);
	need(!errno, "ibv_post_recv");
}

/* The connection may end while completions are waited for. */
static void look_at_events(void)
{
	struct pollfd fd = { .fd = events->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&fd, 1, 0) < 1 || rdma_get_cm_event(events, &event))
		return;
	if (event->event != RDMA_CM_EVENT_ESTABLISHED)
		die(3, "event", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void sleep_on(int ms)
{
	struct pollfd fds[] = { { .fd = events->fd, .events = POLLIN },
				{ .fd = channel->fd, .events = POLLIN } };
	struct ibv_cq *of;
	void *context;

	(void)poll(fds, 2, ms);
	if (!(fds[1].revents & POLLIN))
		return;
	need(!ibv_get_cq_event(channel, &of, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(of, 1);
}

/* False: none until then (ms; 0: never). */
static bool next(struct ibv_wc *ret_wc, int ms)
{
	struct timespec began, now;
	bool armed = false;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (unsigned int turn = 1; !(n = ibv_poll_cq(cq, 1, ret_wc)); turn++) {
		if (sleeps && armed)
			sleep_on(ms ? ms : -1);
		if (sleeps) {
			armed = !armed;
			need(!armed || !ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		}
		if (turn % 256 && !sleeps)
			continue;
		look_at_events();
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (ms && (now.tv_sec - began.tv_sec) * 1000 +
			  (now.tv_nsec - began.tv_nsec) / 1000000 >= ms)
			return false;
	}
	need(n > 0, "ibv_poll_cq");
	if (ret_wc->status != IBV_WC_SUCCESS)
		die(3, "completion", ibv_wc_status_str(ret_wc->status));
	return true;
}

/* ------------------------------------------------------------------------
 * Requests.
 */

static void post(enum ibv_wr_opcode opcode, uint8_t *from, uint32_t size, uint64_t at, uint32_t imm)
{
	struct ibv_sge sge = { (uintptr_t)from, size, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(imm) }, *bad;

	if (ud) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = their_qpn;
		wr.wr.ud.remote_qkey = their_qkey;
	} else if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = at;
		wr.wr.atomic.rkey = theirs.key;
		wr.wr.atomic.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : imm;
		wr.wr.atomic.swap = imm + 1;
	} else {
		wr.wr.rdma.remote_addr = at;
		wr.wr.rdma.rkey = theirs.key;
	}
	errno = ibv_post_send(id->qp, &wr, &bad);
	need(!errno, "ibv_post_send");
}

static void say(enum op op, uint32_t sequence, uint32_t index, uint32_t of, uint32_t size, bool imm)
{
	struct message message = { op, sequence, index, of, size };
	uint8_t *bytes = memory->out[index];

	memcpy(bytes, &message, sizeof(message));
	fill(bytes, sizeof(message), size, sequence, index);
	post(imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, bytes, size, 0, sequence);
}

static void hear(const struct ibv_wc *wc, struct message *ret_message)
{
	const uint8_t *bytes = memory->in[wc->wr_id] + (ud ? GRH : 0);

	memcpy(ret_message, bytes, sizeof(*ret_message));
	if (ret_message->size != wc->byte_len - (ud ? GRH : 0) || ret_message->index >= MANY)
		die(1, "a message", "of another length");
	verify(bytes, sizeof(*ret_message), ret_message->size, ret_message->sequence,
	       ret_message->index, "a message");
}

static uint64_t target(uint32_t index)
{
	return theirs.address + offsetof(struct memory, target) + (uint64_t)index * SLOT;
}

/* Waits for requests to complete, and for the answer if one comes.  False: a datagram got lost. */
static bool complete(uint32_t sequence, uint32_t requests, bool answered)
{
	struct message message;
	struct ibv_wc wc;

	while (requests || answered) {
		if (!next(&wc, ud && !requests ? REPEAT_MS : 0))
			return false;
		if (!(wc.opcode & IBV_WC_RECV)) {
			requests--;
			continue;
		}
		hear(&wc, &message);
		post_receive(wc.wr_id);
		if (message.sequence == sequence)
			answered = false;
		else if (!ud)
			die(1, "an answer", "to something else");
	}
	return true;
}

/* ------------------------------------------------------------------------
 * Operations of the client.
 */

/* A single message, which the server answers when it has done what that says. */
static void tell(enum op op, uint32_t sequence, uint32_t of, uint32_t size, bool imm)
{
	bool heard;

	do {
		if (op == SEND)
			for (uint32_t i = 0; i < of; i++)
				say(op, sequence, i, of, size, imm);
		else
			say(op, sequence, of - 1, of, size, imm);
		heard = complete(sequence, op == SEND ? of : 1, true);
		repeated += !heard;
	} while (!heard);
}

static void write_all(uint32_t sequence, uint32_t num, uint32_t size, bool imm)
{
	for (uint32_t i = 0; i < num; i++) {
		fill(memory->back[i], 0, size, sequence, i);
		post(imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, memory->back[i], size,
		     target(i), sequence);
	}
	(void)complete(sequence, num, false);
	tell(WRITE, sequence, num, size, imm);
}

static void read_all(uint32_t sequence, uint32_t num, uint32_t size)
{
	tell(READ, sequence, num, size, false);
	for (uint32_t i = 0; i < num; i++) {
		memset(memory->back[i], 0, size);
		post(IBV_WR_RDMA_READ, memory->back[i], size, target(i), 0);
	}
	(void)complete(sequence, num, false);
	for (uint32_t i = 0; i < num; i++)
		verify(memory->back[i], 0, size, sequence, i, "what was read");
}

static void add_all(uint32_t num)
{
	static uint64_t expected;
	const uint64_t at = theirs.address + offsetof(struct memory, counter);

	for (uint32_t i = 0; i < num; i++)
		post(IBV_WR_ATOMIC_FETCH_AND_ADD, (uint8_t *)&memory->old[i], 8, at, 0);
	(void)complete(0, num, false);
	for (uint32_t i = 0; i < num; i++)
		if (memory->old[i] != expected++)
			die(1, "FETCH_AND_ADD", "another value");
	post(IBV_WR_ATOMIC_CMP_AND_SWP, (uint8_t *)&memory->old[0], 8, at, (uint32_t)expected);
	(void)complete(0, 1, false);
	if (memory->old[0] != expected++)
		die(1, "CMP_AND_SWP", "another value");
}

static void once(enum op op, uint32_t num, uint32_t size)
{
	static uint32_t sequence;

	sequence++;
	if (op == SEND)
		tell(SEND, sequence, num, size, false);
	else if (op == WRITE)
		write_all(sequence, num, size, false);
	else if (op == READ)
		read_all(sequence, num, size);
	else if (op == ATOMIC)
		add_all(num);
	else if (op == IMM && ud)
		tell(SEND, sequence, num, size, true);
	else if (op == IMM)
		write_all(sequence, num, size, true);
	else if (op == END)
		tell(END, UINT32_MAX, 1, size, false);
}

/* ------------------------------------------------------------------------
 * The server.
 */

static void answer(const struct message *message)
{
	for (uint32_t i = 0; i < message->of; i++) {
		if (message->op == WRITE)
			verify(memory->target[i], 0, message->size, message->sequence, i,
			       "what was written");
		else if (message->op == READ)
			fill(memory->target[i], 0, message->size, message->sequence, i);
	}
	say(SEND, message->sequence, 0, 1, message->size, false);
}

static void take_address(const struct ibv_wc *wc)
{
	ah = ibv_create_ah_from_wc(pd, (struct ibv_wc *)(uintptr_t)wc,
				   (struct ibv_grh *)memory->in[wc->wr_id], id->port_num);
	need(ah, "ibv_create_ah_from_wc");
	their_qpn = wc->src_qp;
	their_qkey = RDMA_UDP_QKEY;
}

static void serve(void)
{
	struct message message = { 0 };
	uint32_t written = 0, answers = 0;
	struct ibv_wc wc;

	/* A connection's end shows that the answer has arrived, and may come before its completion. */
	while (message.op != END || (ud && answers)) {
		(void)next(&wc, 0);
		if (!(wc.opcode & IBV_WC_RECV)) {
			answers--;
			continue;
		}
		if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
			written++;
			post_receive(wc.wr_id);
			continue;
		}
		hear(&wc, &message);
		if (wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) != message.sequence)
			die(1, "immediate data", "wrong");
		if (wc.wc_flags & IBV_WC_WITH_IMM && !ud && written != message.of)
			die(1, "WRITE with immediate data", "without a completion");
		written = 0;
		if (ud && !ah)
			take_address(&wc);
		post_receive(wc.wr_id);
		if (message.index + 1 == message.of) {
			answer(&message);
			answers++;
		}
	}
}

/* ------------------------------------------------------------------------
 * Connections.
 */

static void make_qp(void)
{
	struct ibv_qp_init_attr attr = { .cap = { MANY + 1, RECEIVES, 1, 1, 0 },
					 .qp_type = ud ? IBV_QPT_UD : IBV_QPT_RC };

	pd = ibv_alloc_pd(id->verbs);
	channel = ibv_create_comp_channel(id->verbs);
	memory = aligned_alloc(4096, (sizeof(*memory) + 4095) / 4096 * 4096);
	need(pd && channel && memory, "ibv_alloc_pd");
	memset(memory, 0, sizeof(*memory));
	cq = ibv_create_cq(id->verbs, 2 * (MANY + RECEIVES), NULL, channel, 0);
	need(cq, "ibv_create_cq");
	if (with_srq) {
		struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };

		srq = ibv_create_srq(pd, &srq_attr);
		need(srq, "ibv_create_srq");
	}
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	need(!rdma_create_qp(id, pd, &attr), "rdma_create_qp");
	mr = ibv_reg_mr(pd, memory, sizeof(*memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | (ud ? 0 : IBV_ACCESS_REMOTE_ATOMIC));
	if (!mr)	/* iWARP */
		mr = ibv_reg_mr(pd, memory, sizeof(*memory), IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	need(mr, "ibv_reg_mr");
	for (uint64_t i = 0; i < RECEIVES; i++)
		post_receive(i);
}

static struct rdma_conn_param greet(struct greeting *own, const char *text)
{
	*own = (struct greeting){ .srq = with_srq };
	snprintf(own->text, sizeof(own->text), "%s", text);
	if (mr) {
		own->address = (uintptr_t)memory;
		own->key = mr->rkey;
	}
	return (struct rdma_conn_param){
		.private_data = own, .private_data_len = sizeof(*own), .responder_resources = 4,
		.initiator_depth = 4, .retry_count = 7, .rnr_retry_count = 7,
		.qp_num = ud && id->qp ? id->qp->qp_num : 0,
	};
}

static int reject_status(void)
{
	/* IB_CM_REJ_CONSUMER_DEFINED; iWARP has no reasons. */
	return id->verbs->device->transport_type == IBV_TRANSPORT_IWARP ? -ECONNRESET : 28;
}

/* Expects an event, with the peer's greeting if text says which. */
static void expect(enum rdma_cm_event_type type, const char *text)
{
	struct rdma_cm_event *event;
	const void *data;
	size_t len;

	need(!rdma_get_cm_event(events, &event), "rdma_get_cm_event");
	if (event->event != type)
		die(3, rdma_event_str(event->event), rdma_event_str(type));
	if (type == RDMA_CM_EVENT_REJECTED && event->status != reject_status())
		die(1, "REJECTED", "for another reason");
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		id = event->id;
	data = ud ? event->param.ud.private_data : event->param.conn.private_data;
	len = ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	if (text && (len < sizeof(theirs) || strcmp(memcpy(&theirs, data, sizeof(theirs)), text)))
		die(1, "private data", "another one");
	if (ud && asks && type == RDMA_CM_EVENT_ESTABLISHED) {
		ah = ibv_create_ah(pd, &event->param.ud.ah_attr);
		need(ah, "ibv_create_ah");
		their_qpn = event->param.ud.qp_num;
		their_qkey = event->param.ud.qkey;
	}
	rdma_ack_cm_event(event);
}

static void reach(struct sockaddr_in *address, bool rejected)
{
	struct rdma_conn_param param;
	struct greeting own;

	need(!rdma_create_id(events, &id, NULL, ud ? RDMA_PS_UDP : RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_resolve_addr(id, NULL, (struct sockaddr *)address, TIMEOUT_MS), "rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	need(!rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	make_qp();
	param = greet(&own, client_text);
	own.rejected = rejected;
	need(!rdma_connect(id, &param), "rdma_connect");
	/* For UD it is another event. */
	if (rejected)
		expect(ud ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED, reject_text);
	else
		expect(RDMA_CM_EVENT_ESTABLISHED, server_text);
}

static void be_reached(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_cm_id *listener;
	struct rdma_conn_param param;
	struct greeting own;

	need(!rdma_create_id(events, &listener, NULL, ud ? RDMA_PS_UDP : RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
	need(!rdma_listen(listener, 8), "rdma_listen");
	for (;;) {
		expect(RDMA_CM_EVENT_CONNECT_REQUEST, client_text);
		if (!theirs.rejected)
			break;
		param = greet(&own, reject_text);
		need(!rdma_reject(id, &own, sizeof(own)), "rdma_reject");
		need(!rdma_destroy_id(id), "rdma_destroy_id");
	}
	with_srq = theirs.srq;
	make_qp();
	param = greet(&own, server_text);
	need(!rdma_accept(id, &param), "rdma_accept");
	if (!ud)
		expect(RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static enum op op_of(const char *word)
{
	for (enum op op = SEND; op <= REJECT; op++)
		if (!strcmp(word, names[op]))
			return op;
	die(1, word, "no operation");
}

static void ask(struct sockaddr_in *address, char **words)
{
	unsigned int rounds = 0, after = 0;

	for (char **word = words; *word; word++)
		if (op_of(*word) == REJECT)
			reach(address, true);
	reach(address, false);
	puts("connected");
	while (after < AFTER) {
		after += stop != 0;
		rounds++;
		for (char **word = words; *word; word++) {
			once(op_of(*word), 1, 64);
			once(op_of(*word), MANY, slot);
		}
	}
	once(END, 1, 64);
	printf("%u rounds, %u datagrams repeated\n", rounds, repeated);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	const char *kind;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, on_signal);
	alarm(PATIENCE);
	asks = argc > 3 && !strcmp(argv[1], "ask");
	if (argc < 3 || (asks && inet_pton(AF_INET, argv[2], &address.sin_addr) != 1))
		die(1, "ops", "serve KIND, or ask ADDRESS KIND [sleep] OP...");
	kind = argv[asks ? 3 : 2];
	argv += asks ? 4 : 3;
	ud = !strcmp(kind, "ud");
	with_srq = asks && !strcmp(kind, "srq");
	slot = ud ? SLOT_UD : SLOT;
	sleeps = *argv && !strcmp(*argv, "sleep");
	events = rdma_create_event_channel();
	need(events, "rdma_create_event_channel");
	if (asks) {
		ask(&address, argv + sleeps);
	} else {
		be_reached();
		serve();
	}
	if (!ud && asks)
		need(!rdma_disconnect(id), "rdma_disconnect");
	if (!ud)
		expect(RDMA_CM_EVENT_DISCONNECTED, NULL);
	return 0;
}
