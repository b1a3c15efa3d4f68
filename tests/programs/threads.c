/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c - a server in one thread and clients in others, which all begin at the same instant.
 *
 *	threads CLIENTS CONNECTIONS
 *
 * Without clients the server waits for ever.
 * Each client connects and disconnects so many times, and says what private data it got.  The server
 * gives each connection the next number, so the output shows the order of threads.  With WITH_SIM the
 * program makes the network itself, as a test does, and so has a virtual clock of its own.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#ifdef WITH_SIM
#include "polycm/sim.h"
#endif

#include "member.h"

#define MAX_CLIENTS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static int listens, num_clients, num_connections;

static struct sockaddr_in server_address(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7471) };

	inet_pton(AF_INET, "10.0.0.1", &in.sin_addr);
	return in;
}

static void give_qp(struct rdma_cm_id *id)
{
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	CHECK(cq);
	id->context = cq;
	CHECK(!rdma_create_qp(id, NULL, &attr));
}

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	CHECK(!ibv_destroy_cq(id->context));
	CHECK(!rdma_destroy_id(id));
}

static void accept_one(struct rdma_cm_id *id, unsigned char number)
{
	struct rdma_conn_param param = {
		.private_data = &number, .private_data_len = 1, .responder_resources = 1,
		.initiator_depth = 1,
	};

	give_qp(id);
	CHECK(!rdma_accept(id, &param));
}

static void say_listening(void)
{
	pthread_mutex_lock(&lock);
	listens = 1;
	pthread_cond_broadcast(&begun);
	pthread_mutex_unlock(&lock);
}

static void *serve(void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in address = server_address();
	int left = num_clients ? num_clients * num_connections : 1;
	unsigned char number = 0;
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener, *id;
	enum rdma_cm_event_type type;

	CHECK(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&address));
	CHECK(!rdma_listen(listener, MAX_CLIENTS));
	say_listening();
	while (left) {
		CHECK(!rdma_get_cm_event(channel, &event));
		type = event->event;
		id = event->id;
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			accept_one(id, number++);
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(id);
			end(id);
			left--;
		}
	}
	CHECK(!rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
	return arg;
}

/* The first byte of its private data. */
static int await(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	int first = 0;

	CHECK(!rdma_get_cm_event(channel, &event));
	CHECK(event->event == type);
	if (type == RDMA_CM_EVENT_ESTABLISHED) {
		CHECK(event->param.conn.private_data_len);
		first = *(const unsigned char *)event->param.conn.private_data;
	}
	rdma_ack_cm_event(event);
	return first;
}

static void connect_once(struct rdma_event_channel *channel, int client)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
	};
	struct sockaddr_in address = server_address();
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!rdma_resolve_route(id, 2000));
	await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	give_qp(id);
	CHECK(!rdma_connect(id, &param));
	printf("client %d has number %d\n", client, await(channel, RDMA_CM_EVENT_ESTABLISHED));
	CHECK(!rdma_disconnect(id));
	await(channel, RDMA_CM_EVENT_DISCONNECTED);
	end(id);
}

static void *act(void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int client = (int)(long)arg;

	CHECK(channel);
	pthread_mutex_lock(&lock);
	while (!listens)
		pthread_cond_wait(&begun, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < num_connections; i++)
		connect_once(channel, client);
	rdma_destroy_event_channel(channel);
	return NULL;
}

static void make_network(void)
{
#ifdef WITH_SIM
	struct polycm_sim_node *node;

	CHECK(!polycm_sim_create(7));
	CHECK(!polycm_sim_node_add("server", "roce", "10.0.0.1/24", &node));
	CHECK(!polycm_sim_node_add("client", "roce", "10.0.0.2/24", &node));
#endif
}

static void end_network(void)
{
#ifdef WITH_SIM
	/* It refuses while anything is left. */
	CHECK(!polycm_sim_destroy());
#endif
}

int main(int argc, char **argv)
{
	pthread_t server, clients[MAX_CLIENTS];

	num_clients = argc > 2 ? atoi(argv[1]) : 0;
	num_connections = argc > 2 ? atoi(argv[2]) : 0;
	CHECK(num_clients >= 0 && num_clients <= MAX_CLIENTS && num_connections > 0);
	make_network();
	CHECK(!pthread_create(&server, NULL, serve, NULL));
	for (long i = 0; i < num_clients; i++)
		CHECK(!pthread_create(&clients[i], NULL, act, (void *)i));
	for (int i = 0; i < num_clients; i++)
		CHECK(!pthread_join(clients[i], NULL));
	CHECK(!pthread_join(server, NULL));
	end_network();
	return 0;
}
