/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_refused_calls.c - at level "warn" each refused call of rdma_* and ibv_*
 * is one line with its reason, and so is the first failed request of a queue
 * pair.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caught.h"
#include "transfer.h"

/* One line at warn with these words. */
static void check_line(const char *what, const char *text, const char *call, const char *reason)
{
	const char *end = strchr(text, '\n');

	if (!end || end[1])
		fail_msg("%s: not one line: %s", what, text);
	if (strncmp(text, "polycm: warn: ", 14) != 0 || !strstr(text, call) || !strstr(text, reason))
		fail_msg("%s: no \"%s\" and \"%s\" in: %s", what, call, reason, text);
}

/* --- Calls on a connected pair. --- */

static struct transfer x;

#define CLIENT (x.client.id)
#define SERVER (x.server.id)

/* rdma_* as errno; ibv_* that make something likewise; others as what they return. */
static int rdma_errno(int r)
{
	return r ? errno : 0;
}

static int made(const void *object)
{
	return object ? 0 : errno;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
}

/* Another id of the client's, on its device. */
static struct rdma_cm_id *other_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(x.client.channel, &id, NULL, ps), 0);
	assert_int_equal(rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0)), 0);
	return id;
}

static int create_qp(struct ibv_qp_init_attr attr)
{
	struct rdma_cm_id *id = other_id(RDMA_PS_TCP);
	int err = rdma_errno(rdma_create_qp(id, NULL, &attr));

	assert_int_equal(rdma_destroy_id(id), 0);
	return err;
}

static int qp_sges(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.cap.max_send_sge = 200;
	return create_qp(attr);
}

static int qp_inline(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.cap.max_inline_data = 1 << 20;
	return create_qp(attr);
}

static int qp_entries(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.cap.max_send_wr = 1 << 30;
	return create_qp(attr);
}

static int qp_of_datagrams(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.qp_type = IBV_QPT_UD;
	return create_qp(attr);
}

/* The server's rdma_create_qp() wrote its CQs into the attributes that the client uses next. */
static int qp_with_the_servers_cqs(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.send_cq = SERVER->send_cq;
	return create_qp(attr);
}

/* rdma_destroy_qp() of another id destroyed what its rdma_create_qp() wrote into the attributes. */
static int qp_with_cqs_that_are_gone(void)
{
	struct rdma_cm_id *id = other_id(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = qp_attr();

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
	return create_qp(attr);
}

static struct ibv_cq *cq_that_is_gone(void)
{
	struct ibv_cq *cq = ibv_create_cq(CLIENT->verbs, 1, NULL, NULL, 0);

	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	return cq;
}

static int plain_qp_with_a_cq_that_is_gone(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.send_cq = CLIENT->send_cq;
	attr.recv_cq = cq_that_is_gone();
	return made(ibv_create_qp(CLIENT->pd, &attr));
}

static int extended_qp_with_a_cq_that_is_gone(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = CLIENT->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.recv_cq = CLIENT->recv_cq,
	};

	attr.send_cq = cq_that_is_gone();
	return made(ibv_create_qp_ex(CLIENT->verbs, &attr));
}

static int qp_with_an_srq_that_is_gone(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = qp_attr();

	attr.srq = ibv_create_srq(CLIENT->pd, &srq_attr);
	assert_non_null(attr.srq);
	assert_int_equal(ibv_destroy_srq(attr.srq), 0);
	attr.send_cq = CLIENT->send_cq;
	attr.recv_cq = CLIENT->recv_cq;
	return made(ibv_create_qp(CLIENT->pd, &attr));
}

static int xrc_srq_with_a_cq_that_is_gone(void)
{
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = CLIENT->pd,
	};
	int err;

	attr.xrcd = ibv_open_xrcd(CLIENT->verbs, &xrcd_attr);
	assert_non_null(attr.xrcd);
	attr.cq = cq_that_is_gone();
	err = made(ibv_create_srq_ex(CLIENT->verbs, &attr));
	assert_int_equal(ibv_close_xrcd(attr.xrcd), 0);
	return err;
}

static int srq_entries(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1 << 30, .max_sge = 1 } };
	struct rdma_cm_id *id = other_id(RDMA_PS_TCP);
	int err = rdma_errno(rdma_create_srq(id, NULL, &attr));

	assert_int_equal(rdma_destroy_id(id), 0);
	return err;
}

static int option_level(void)
{
	int value = 0;

	return rdma_errno(rdma_set_option(CLIENT, 77, 1, &value, sizeof(value)));
}

static int option_name(void)
{
	int value = 0;

	return rdma_errno(rdma_set_option(CLIENT, RDMA_OPTION_ID, 99, &value, sizeof(value)));
}

static int notify_of_a_path(void)
{
	return rdma_errno(rdma_notify(CLIENT, IBV_EVENT_SM_CHANGE));
}

static int notify_twice(void)
{
	return rdma_errno(rdma_notify(CLIENT, IBV_EVENT_COMM_EST));
}

static int join(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = other_id(ps);
	int err = rdma_errno(rdma_join_multicast(id, step_sa("239.1.1.1", 0), NULL));

	assert_int_equal(rdma_destroy_id(id), 0);
	return err;
}

static int join_connected(void)
{
	return join(RDMA_PS_TCP);
}

static int leave_none(void)
{
	return rdma_errno(rdma_leave_multicast(CLIENT, step_sa("239.1.1.1", 0)));
}

static int bind_taken(void)
{
	struct rdma_cm_id *id;
	int err;

	assert_int_equal(rdma_create_id(x.client.channel, &id, NULL, RDMA_PS_TCP), 0);
	err = rdma_errno(rdma_bind_addr(id, step_sa(SERVER_ADDRESS, SERVER_PORT)));
	assert_int_equal(rdma_destroy_id(id), 0);
	return err;
}

static int bind_twice(void)
{
	struct rdma_cm_id *id = other_id(RDMA_PS_TCP);
	int err = rdma_errno(rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0)));

	assert_int_equal(rdma_destroy_id(id), 0);
	return err;
}

static int listen_twice(void)
{
	return rdma_errno(rdma_listen(x.pair.listener, 1));
}

static int connect_twice(void)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	return rdma_errno(rdma_connect(CLIENT, &param));
}

static int init_attr_of_sqd(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	int mask;

	return rdma_errno(rdma_init_qp_attr(CLIENT, &attr, &mask));
}

static int no_channel(void)
{
	errno = 0;
	rdma_destroy_event_channel(NULL);
	return errno;
}

static int unknown_service(void)
{
	struct rdma_addrinfo *res;
	int r = rdma_getaddrinfo("127.0.0.1", "no such service", NULL, &res);

	assert_true(r == EAI_SERVICE || r == EAI_NONAME || r == EAI_SYSTEM);
	return 0;
}

static int unknown_host(void)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo("no host", NULL, &hints, &res), EAI_NONAME);
	return 0;
}

static int busy_pd(void)
{
	return ibv_dealloc_pd(CLIENT->pd);
}

static int busy_cq(void)
{
	return ibv_destroy_cq(CLIENT->send_cq);
}

static int busy_channel(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(CLIENT->verbs);
	struct ibv_cq *cq = ibv_create_cq(CLIENT->verbs, 1, NULL, channel, 0);
	int err;

	assert_non_null(cq);
	err = ibv_destroy_comp_channel(channel);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	return err;
}

static int busy_srq(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(CLIENT->pd, &srq_attr);
	struct ibv_cq *cq = ibv_create_cq(CLIENT->verbs, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = qp_attr();
	struct ibv_qp *qp;
	int err;

	assert_non_null(srq);
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	qp = ibv_create_qp(CLIENT->pd, &attr);
	assert_non_null(qp);
	err = ibv_destroy_srq(srq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	return err;
}

static int rereg_nothing(void)
{
	assert_int_not_equal(ibv_rereg_mr(x.client.mr, 0, NULL, NULL, 0, 0), 0);
	return errno;
}

static int port_99(void)
{
	struct ibv_port_attr attr;

	return ibv_query_port(CLIENT->verbs, 99, &attr);
}

static int gid_9999(void)
{
	union ibv_gid gid;

	return rdma_errno(ibv_query_gid(CLIENT->verbs, 1, 9999, &gid));
}

static int pkey_9999(void)
{
	__be16 pkey;

	return rdma_errno(ibv_query_pkey(CLIENT->verbs, 1, 9999, &pkey));
}

static int pkey_unknown(void)
{
	int r = ibv_get_pkey_index(CLIENT->verbs, 1, htons(0x1234));

	return r < 0 ? errno : 0;
}

static int detach_none(void)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = 1 } };

	return ibv_detach_mcast(CLIENT->qp, &gid, 0);
}

static int mr_of_a_file(void)
{
	return made(ibv_reg_dmabuf_mr(CLIENT->pd, 0, 4096, 0, 0, 0));
}

#define ALL 7u
#define ON(t) (1u << (t))
#define NOT_IWARP (ON(ROCE) | ON(IB))

static const struct {
	const char *name;
	int (*call)(void);
	unsigned int transports;
	int err;
	const char *told, *reason;
} cases[] = {
	{ "too many SGEs", qp_sges, ALL, EINVAL, "rdma_create_qp: Invalid argument",
	  "(max_send_sge is 200, the device has " },
	{ "too much inline data", qp_inline, ALL, EINVAL, "rdma_create_qp: Invalid argument",
	  "(max_inline_data is 1048576, the device has " },
	{ "too many entries", qp_entries, ALL, EINVAL, "rdma_create_qp: Invalid argument",
	  "no CQ of 1073741824 entries: cqe is 1073741824, the device has " },
	{ "UD on an RC id", qp_of_datagrams, NOT_IWARP, EINVAL, "rdma_create_qp: Invalid argument",
	  " cannot become INIT: QP 0x" },
	{ "UD on an RC id", qp_of_datagrams, NOT_IWARP, EINVAL, "rdma_create_qp: Invalid argument",
	  "RESET to INIT needs the attributes QKEY, too" },
	{ "UD on iWARP", qp_of_datagrams, ON(IWARP), EOPNOTSUPP,
	  "rdma_create_qp: Operation not supported", "(iWARP has reliable connections only)" },
	{ "CQs of another id", qp_with_the_servers_cqs, ALL, EINVAL, "rdma_create_qp: Invalid argument",
	  "send_cq is of device sim0, the id is on sim1" },
	{ "CQs that were destroyed", qp_with_cqs_that_are_gone, ALL, EINVAL,
	  "rdma_create_qp: Invalid argument", "(send_cq was destroyed, or is no CQ of the simulator)" },
	{ "a CQ that was destroyed", plain_qp_with_a_cq_that_is_gone, ALL, EINVAL,
	  "ibv_create_qp refused", "recv_cq was destroyed, or is no CQ of the simulator" },
	{ "a CQ that was destroyed", extended_qp_with_a_cq_that_is_gone, ALL, EINVAL,
	  "ibv_create_qp_ex refused", "send_cq was destroyed, or is no CQ of the simulator" },
	{ "an SRQ that was destroyed", qp_with_an_srq_that_is_gone, NOT_IWARP, EINVAL,
	  "ibv_create_qp refused", "srq was destroyed, or is no SRQ of the simulator" },
	{ "SRQ with a CQ that was destroyed", xrc_srq_with_a_cq_that_is_gone, NOT_IWARP, EINVAL,
	  "ibv_create_srq_ex refused", ": cq was destroyed, or is no CQ of the simulator" },
	{ "SRQ too long", srq_entries, NOT_IWARP, EINVAL, "rdma_create_srq: Invalid argument",
	  "(max_wr is 1073741824, the device has " },
	{ "level of options", option_level, ALL, ENOSYS, "rdma_set_option", "(no options of level 77)" },
	{ "option", option_name, ALL, ENOSYS, "rdma_set_option", "(no option 99)" },
	{ "notify of another event", notify_of_a_path, NOT_IWARP, EINVAL, "rdma_notify",
	  "is neither COMM_EST nor PATH_MIG)" },
	{ "notify when established", notify_twice, NOT_IWARP, EISCONN, "rdma_notify",
	  "(the connection is established already)" },
	{ "join with an RC id", join_connected, ALL, EINVAL, "rdma_join_multicast",
	  "(group 239.1.1.1:0: only ids of datagrams" },
	{ "leave what was not joined", leave_none, ALL, EADDRNOTAVAIL, "rdma_leave_multicast",
	  "no member of group 239.1.1.1" },
	{ "bind to a port that is taken", bind_taken, ALL, EADDRINUSE, "rdma_bind_addr",
	  "(bind to 10.0.0.1:7471: the port is taken)" },
	{ "bind twice", bind_twice, ALL, EINVAL, "rdma_bind_addr", ": the id is in state ADDR_BOUND)" },
	{ "listen twice", listen_twice, ALL, EINVAL, "rdma_listen", "(the id is in state LISTEN)" },
	{ "connect twice", connect_twice, ALL, EINVAL, "rdma_connect", "(the id is in state CONNECT)" },
	{ "attributes of SQD", init_attr_of_sqd, ALL, EINVAL, "rdma_init_qp_attr",
	  "is none of INIT, RTR and RTS)" },
	{ "no channel", no_channel, ALL, EINVAL, "rdma_destroy_event_channel",
	  "(no channel of rdma_create_event_channel)" },
	{ "unknown service", unknown_service, ON(ROCE), 0, "rdma_getaddrinfo: ",
	  " (node 127.0.0.1, service no such service)" },
	{ "unknown host", unknown_host, ON(ROCE), 0, "rdma_getaddrinfo: Name or service not known",
	  " (node no host, service NULL)" },
	{ "PD in use", busy_pd, ALL, EBUSY, "ibv_dealloc_pd refused", "of it are left: " },
	{ "CQ in use", busy_cq, ALL, EBUSY, "ibv_destroy_cq refused", "complete into it are left: 1" },
	{ "completion channel in use", busy_channel, ALL, EBUSY, "ibv_destroy_comp_channel refused",
	  "CQs on it are left: 1" },
	{ "SRQ in use", busy_srq, NOT_IWARP, EBUSY, "ibv_destroy_srq refused",
	  "QPs that receive from it are left: 1" },
	{ "re-register nothing", rereg_nothing, ALL, EINVAL, "ibv_rereg_mr refused", "flags 0x0" },
	{ "port", port_99, ALL, EINVAL, "ibv_query_port refused", "port 99, the device has 1" },
	{ "GID", gid_9999, ALL, EINVAL, "ibv_query_gid refused", "index 9999, port 1 has " },
	{ "P_Key index", pkey_9999, NOT_IWARP, EINVAL, "ibv_query_pkey refused",
	  "index 9999, port 1 has 1" },
	{ "P_Key", pkey_unknown, NOT_IWARP, EINVAL, "ibv_get_pkey_index refused", "P_Key 0xffff only" },
	{ "detach", detach_none, NOT_IWARP, EINVAL, "ibv_detach_mcast refused", "is not of type UD" },
	{ "file of memory", mr_of_a_file, ALL, EOPNOTSUPP, "ibv_reg_dmabuf_mr refused",
	  "simulated devices have no such call" },
};

static void refused_calls(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		transfer_open(&x, t, NULL);
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			const char *text;
			int err;

			if (!(cases[i].transports & ON(t)))
				continue;
			catch_stderr();
			err = cases[i].call();
			text = caught_text();
			if (err != cases[i].err)
				fail_msg("%s on %s: errno %d", cases[i].name, transport_name[t], err);
			check_line(cases[i].name, text, cases[i].told, cases[i].reason);
		}
		transfer_close(&x);
	}
}

/* What librdmacm's own semantics make common is no line. */
static void common_answers_are_no_lines(void **state)
{
	struct ibv_wc wc;

	(void)state;
	transfer_open(&x, ROCE, NULL);
	catch_stderr();
	assert_int_equal(ibv_poll_cq(CLIENT->send_cq, 1, &wc), 0);
	pair_none(x.client.channel);
	assert_string_equal(caught_text(), "");
	transfer_close(&x);
}

/* --- Requests that fail. --- */

static void too_long_for_the_key(void)
{
	assert_int_equal(rdma_post_send(CLIENT, (void *)5, x.client.data, TRANSFER_SIZE + 1, x.client.mr,
					IBV_SEND_SIGNALED), 0);
}

static void write_with_a_wrong_key(void)
{
	assert_int_equal(rdma_post_write(CLIENT, (void *)5, x.client.data, 8, x.client.mr,
					 IBV_SEND_SIGNALED, (uintptr_t)x.server.data,
					 x.server.mr->rkey ^ 0x40), 0);
}

static void send_without_a_receive(void)
{
	transfer_send(&x.client, 5, 0, 8);
}

static void send_more_than_fits(void)
{
	transfer_recv(&x.server, 7, 0, 4);
	transfer_send(&x.client, 5, 0, 8);
}

/* The client's and the server's line; NULL: none. */
static const struct {
	const char *name;
	void (*post)(void);
	unsigned int transports;
	enum ibv_wc_status status;
	const char *client, *client_reason, *server, *server_reason;
} failures[] = {
	{ "local key", too_long_for_the_key, ALL, IBV_WC_LOC_PROT_ERR,
	  "a send request (wr_id 0x5) completes with IBV_WC_LOC_PROT_ERR: lkey 0x",
	  "the range is not within the region", NULL, NULL },
	{ "remote key", write_with_a_wrong_key, NOT_IWARP, IBV_WC_REM_ACCESS_ERR,
	  "a send request (wr_id 0x5) completes with IBV_WC_REM_ACCESS_ERR: ",
	  "the peer does not allow this access to its memory",
	  "a request of QP 0x", "is refused: rkey 0x" },
	{ "no receive", send_without_a_receive, NOT_IWARP, IBV_WC_RNR_RETRY_EXC_ERR,
	  "a send request (wr_id 0x5) completes with IBV_WC_RNR_RETRY_EXC_ERR: ",
	  "the peer has no receive posted", NULL, NULL },
	{ "too long", send_more_than_fits, NOT_IWARP, IBV_WC_REM_INV_REQ_ERR,
	  "a send request (wr_id 0x5) completes with IBV_WC_REM_INV_REQ_ERR: ",
	  "the peer calls it invalid",
	  "a receive request (wr_id 0x7) completes with IBV_WC_LOC_LEN_ERR: ",
	  "it is longer than the receive" },
	{ "remote key", write_with_a_wrong_key, ON(IWARP), IBV_WC_SUCCESS,
	  "the connection to QP 0x", "ends: the peer does not allow this access to its memory",
	  "a request of QP 0x", "is refused: rkey 0x" },
};

/* The one line about a device's QP with both texts, or none at all. */
static void check_failure(const char *name, const char *text, const char *device, const char *what,
			  const char *reason)
{
	char line[512], start[64];
	unsigned int found = 0;

	snprintf(start, sizeof(start), "polycm: warn: %s QP 0x", device);
	while (*text) {
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		text += len + (text[len] == '\n');
		if (strncmp(line, start, strlen(start)) != 0)
			continue;
		found++;
		if (!what || !strstr(line, what) || !strstr(line, reason))
			fail_msg("%s: %s", name, line);
	}
	if (found != (what ? 1 : 0))
		fail_msg("%s: %u lines of %s", name, found, device);
}

static void the_first_failure_of_a_queue_pair(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	(void)state;
	param.rnr_retry_count = 1;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
			const char *text;

			if (!(failures[i].transports & ON(t)))
				continue;
			transfer_open(&x, t, &param);
			catch_stderr();
			failures[i].post();
			transfer_sent(&x.client, 5, failures[i].status);
			/* What follows is flushed. */
			assert_int_equal(polycm_sim_advance(1000000), 0);
			transfer_send(&x.client, 6, 0, 8);
			transfer_sent(&x.client, 6, IBV_WC_WR_FLUSH_ERR);
			text = caught_text();
			check_failure(failures[i].name, text, "sim1", failures[i].client,
				      failures[i].client_reason);
			check_failure(failures[i].name, text, "sim0", failures[i].server,
				      failures[i].server_reason);
			transfer_close(&x);
		}
	}
}

/* --- A connection that is refused. --- */

static void nobody_listens_on_iwarp(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	pair_open_resolved(&pair, IWARP);
	assert_int_equal(rdma_destroy_id(pair.listener), 0);
	pair.listener = NULL;
	catch_stderr();
	assert_errno(rdma_connect(pair.client, &param), ECONNREFUSED);
	check_line("connect", caught_text(), "rdma_connect: Connection refused",
		   "(nobody listens on that port of the peer");
	pair_close(&pair);
}

/* --- A channel that goes under a thread. --- */

static void *wait_on(void *channel)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	return (void *)(intptr_t)errno;
}

static void a_channel_is_destroyed_under_a_thread(void **state)
{
	struct rdma_event_channel *channel;
	struct polycm_sim_node *server, *client;
	const char *text;
	pthread_t thread;
	void *error;

	(void)state;
	pair_open_nodes(ROCE, &server, &client);
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	catch_stderr();
	assert_int_equal(pthread_create(&thread, NULL, wait_on, channel), 0);
	assert_int_equal(usleep(1000), 0);	/* of virtual time: over when the thread sleeps */
	rdma_destroy_event_channel(channel);
	assert_int_equal(pthread_join(thread, &error), 0);
	text = caught_text();
	assert_int_equal((intptr_t)error, EDEADLK);
	if (!strstr(text, "warn: rdma_destroy_event_channel: another thread waits on this channel"))
		fail_msg("%s", text);
	if (!strstr(text, "rdma_get_cm_event: Resource deadlock avoided (another thread destroyed"))
		fail_msg("%s", text);
	pair_close_nodes();
}

static int setup(void **state)
{
	setenv("POLYCM_LOG", "warn", 1);
	return pair_group_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_calls),
		cmocka_unit_test(common_answers_are_no_lines),
		cmocka_unit_test(the_first_failure_of_a_queue_pair),
		cmocka_unit_test(nobody_listens_on_iwarp),
		cmocka_unit_test(a_channel_is_destroyed_under_a_thread),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
