/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.c - steps STEP...: one end of connections, which does what its words say and prints what
 * comes of it, each with the milliseconds that it waited for that.
 *
 *	to=ADDRESS port=PORT	whom the following is for (port: 7471)
 *	ack=N retry=N		time-out and retries of QPs from now on (RoCE, InfiniBand)
 *	resolve[=MS]		rdma_resolve_addr()
 *	route, connect		rdma_resolve_route(), rdma_connect() with a new QP
 *	reach			all of these, and expects what each brings
 *	bind, listen		at to, if that was given
 *	answer			accepts the request that came
 *	accept			expects a request, accepts it, and expects ESTABLISHED
 *	event			prints the next one but TIMEWAIT_EXIT: NAME STATUS
 *	NAME[:STATUS]		expects that event, with that status (0)
 *	recv, send, write, read	posts one; the peer's memory is what it said on connecting
 *	many=N			posts N writes, one after the other's completion
 *	wc=STATUS		expects a completion with that status, as ibv_wc_status_str() says
 *	disconnect, destroy	the newest connection
 *	at=FIFO			prints that, and waits for somebody to open FIFO for writing
 *	fork			the child goes on behind the word `child'; the parent does not go further
 *				than it, and then waits for the child to end well
 *
 * Exit status 1: something else came, which the last line says; a step that takes a minute ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PATIENCE 60	/* seconds */
#define TIMEOUT_MS 2000

/* Where the other end may write and read. */
struct memory {
	uint64_t address;
	uint32_t key;
} __attribute__((packed));

static struct rdma_event_channel *events;
static struct rdma_cm_id *id, *listener;
static struct ibv_mr *mr;
static struct memory theirs;
static const char *to, *port = "7471";
static uint8_t ack, retries = 7;
static char message[64];
static struct timespec began;

static int fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	return 1;
}

static long waited(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000;
}

static int new_id(struct rdma_cm_id **ret_id)
{
	if (!events)
		events = rdma_create_event_channel();
	if (!events || rdma_create_id(events, ret_id, NULL, RDMA_PS_TCP))
		return fail("rdma_create_id");
	return 0;
}

static int find(bool passive, struct rdma_addrinfo **ret_found)
{
	struct rdma_addrinfo hints = { .ai_flags = passive ? RAI_PASSIVE : 0,
				       .ai_port_space = RDMA_PS_TCP };

	return rdma_getaddrinfo((char *)(uintptr_t)to, (char *)(uintptr_t)port, &hints, ret_found) ?
		fail("rdma_getaddrinfo") : 0;
}

/* ------------------------------------------------------------------------
 * Events.
 */

static int take_event(const char *name, int status)
{
	struct rdma_cm_event *event;
	const char *came;
	bool good;

	if (rdma_get_cm_event(events, &event))
		return fail("rdma_get_cm_event");
	if (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		rdma_ack_cm_event(event);
		return take_event(name, status);
	}
	came = rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_");
	printf("%s %d, %ld ms\n", came, event->status, waited());
	good = !name || (!strcmp(came, name) && event->status == status);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		id = event->id;
	if ((event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
	     event->event == RDMA_CM_EVENT_ESTABLISHED) &&
	    event->param.conn.private_data_len >= sizeof(theirs))
		memcpy(&theirs, event->param.conn.private_data, sizeof(theirs));
	rdma_ack_cm_event(event);
	return !good;
}

static int expect_event(const char *word)
{
	char name[64];
	int status = 0;

	if (sscanf(word, "%63[A-Z_]:%d", name, &status) < 1)
		return 1;
	return take_event(name, status);
}

/* ------------------------------------------------------------------------
 * Connections.
 */

static int make_qp(struct rdma_conn_param *ret_param, struct memory *ret_own)
{
	struct ibv_qp_init_attr attr = { .cap = { 16, 16, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1 };

	if (ack)
		(void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack,
				      sizeof(ack));
	if (rdma_create_qp(id, NULL, &attr))
		return fail("rdma_create_qp");
	mr = ibv_reg_mr(id->pd, message, sizeof(message),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		return fail("ibv_reg_mr");
	*ret_own = (struct memory){ (uintptr_t)message, mr->rkey };
	*ret_param = (struct rdma_conn_param){
		.private_data = ret_own,
		.private_data_len = sizeof(*ret_own),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = retries,
		.rnr_retry_count = 7,
	};
	return 0;
}

static int resolve(int ms)
{
	struct rdma_addrinfo *found;
	int r;

	if (new_id(&id) || find(false, &found))
		return 1;
	r = rdma_resolve_addr(id, NULL, found->ai_dst_addr, ms);
	rdma_freeaddrinfo(found);
	return r ? fail("rdma_resolve_addr") : 0;
}

static int connect_it(void)
{
	struct rdma_conn_param param;
	struct memory own;

	if (make_qp(&param, &own))
		return 1;
	return rdma_connect(id, &param) ? fail("rdma_connect") : 0;
}

static int reach(void)
{
	return resolve(TIMEOUT_MS) || take_event("ADDR_RESOLVED", 0) ||
	       rdma_resolve_route(id, TIMEOUT_MS) || take_event("ROUTE_RESOLVED", 0) ||
	       connect_it() || take_event("ESTABLISHED", 0);
}

static int bind_it(struct rdma_cm_id *of)
{
	struct rdma_addrinfo *found;
	int r;

	if (find(true, &found))
		return 1;
	r = rdma_bind_addr(of, found->ai_src_addr);
	rdma_freeaddrinfo(found);
	return r ? fail("rdma_bind_addr") : 0;
}

static int listen_it(void)
{
	if (new_id(&listener) || bind_it(listener))
		return 1;
	return rdma_listen(listener, 8) ? fail("rdma_listen") : 0;
}

static int answer(void)
{
	struct rdma_conn_param param;
	struct memory own;

	if (make_qp(&param, &own))
		return 1;
	return rdma_accept(id, &param) ? fail("rdma_accept") : 0;
}

static int accept_it(void)
{
	return take_event("CONNECT_REQUEST", 0) || answer() || take_event("ESTABLISHED", 0);
}

static int destroy(void)
{
	if (mr)
		ibv_dereg_mr(mr);
	if (id && id->qp)
		rdma_destroy_qp(id);
	if (id)
		rdma_destroy_id(id);
	id = NULL;
	mr = NULL;
	return 0;
}

/* ------------------------------------------------------------------------
 * Data.
 */

static int post(const char *what)
{
	int r;

	if (!strcmp(what, "recv"))
		r = rdma_post_recv(id, NULL, message, sizeof(message), mr);
	else if (!strcmp(what, "send"))
		r = rdma_post_send(id, NULL, message, sizeof(message), mr, 0);
	else if (!strcmp(what, "write"))
		r = rdma_post_write(id, NULL, message, sizeof(message), mr, 0, theirs.address,
				    theirs.key);
	else
		r = rdma_post_read(id, NULL, message, sizeof(message), mr, 0, theirs.address,
				   theirs.key);
	return r ? fail(what) : 0;
}

static int expect_completion(const char *status)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(id->send_cq, 1, &wc);
		if (!n)
			n = ibv_poll_cq(id->recv_cq, 1, &wc);
		if (!n)
			usleep(1000);
	} while (!n);
	if (n < 0)
		return fail("ibv_poll_cq");
	if (!status && wc.status == IBV_WC_SUCCESS)
		return 0;
	printf("wc: %s, %ld ms\n", ibv_wc_status_str(wc.status), waited());
	return !status || strcmp(status, ibv_wc_status_str(wc.status));
}

static int many(int number)
{
	while (number--)
		if (post("write") || expect_completion(NULL))
			return 1;
	return 0;
}

/* ------------------------------------------------------------------------
 * Steps.
 */

static int wait_at(const char *fifo)
{
	int fd;

	printf("at %s\n", fifo);
	fd = open(fifo, O_RDONLY);
	return fd < 0 ? fail(fifo) : close(fd);
}

/* In the child the number of words to skip, in the parent 0, or a negative one. */
static int fork_it(char **words)
{
	pid_t child = fork();
	int num = 0;

	if (child < 0)
		return fail("fork"), -1;
	if (child)
		return 0;
	while (words[num] && strcmp(words[num], "child"))
		num++;
	events = NULL;
	id = listener = NULL;
	mr = NULL;
	return num;
}

static int wait_for_child(void)
{
	int status;

	return wait(&status) < 0 || status ? fail("the child") : 0;
}

static int step(const char *word, const char *value)
{
	if (!strcmp(word, "to"))
		return to = value, 0;
	if (!strcmp(word, "port"))
		return port = value, 0;
	if (!strcmp(word, "ack"))
		return ack = (uint8_t)atoi(value), 0;
	if (!strcmp(word, "retry"))
		return retries = (uint8_t)atoi(value), 0;
	if (!strcmp(word, "resolve"))
		return resolve(*value ? atoi(value) : TIMEOUT_MS);
	if (!strcmp(word, "route"))
		return rdma_resolve_route(id, TIMEOUT_MS) ? fail(word) : 0;
	if (!strcmp(word, "connect"))
		return connect_it();
	if (!strcmp(word, "reach"))
		return reach();
	if (!strcmp(word, "bind"))
		return new_id(&id) || bind_it(id);
	if (!strcmp(word, "listen"))
		return listen_it();
	if (!strcmp(word, "answer"))
		return answer();
	if (!strcmp(word, "accept"))
		return accept_it();
	if (!strcmp(word, "event"))
		return take_event(NULL, 0);
	if (!strcmp(word, "wc"))
		return expect_completion(value);
	if (!strcmp(word, "many"))
		return many(atoi(value));
	if (!strcmp(word, "disconnect"))
		return rdma_disconnect(id) ? fail(word) : 0;
	if (!strcmp(word, "destroy"))
		return destroy();
	if (!strcmp(word, "at"))
		return wait_at(value);
	return *word >= 'A' && *word <= 'Z' ? expect_event(word) : post(word);
}

int main(int argc, char **argv)
{
	char **words = argv + 1, *value;
	int skipped;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; argc > 1 && *words; words++) {
		alarm(PATIENCE);
		clock_gettime(CLOCK_MONOTONIC, &began);
		if (!strcmp(*words, "child"))
			return wait_for_child();
		if (!strcmp(*words, "fork")) {
			skipped = fork_it(words);
			if (skipped < 0)
				return 1;
			words += skipped;
			continue;
		}
		value = strchr(*words, '=');
		if (value)
			*value++ = '\0';
		if (step(*words, value ? value : ""))
			return printf("step %d, %s: failed\n", (int)(words - argv), *words), 1;
	}
	return 0;
}
