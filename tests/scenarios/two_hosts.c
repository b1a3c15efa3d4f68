/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * two_hosts.c - a library for LD_PRELOAD: the scenarios, whose one thread plays both ends, on two hosts.
 *
 * Host one is where the process was started, with the libpolycm that is preloaded, too.  Host two
 * is another network namespace, with a libpolycm in a namespace of the dynamic linker, which knows
 * nothing of the first one, as if it was another process.  Each call goes to that of the object's
 * host, and the thread is on that host for as long: so is what that libpolycm opens, and so are
 * the threads that it starts.
 *
 * The harness says where a channel is made: two_hosts_at_server(), which it looks for by name.
 * What comes from it is there, too.
 *
 * Environment: SCENARIO_HOST_TWO, a file of its network namespace; SCENARIO_LIBPOLYCM.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr

#define EXPORT __attribute__((visibility("default")))

enum host { ONE, TWO };

EXPORT void two_hosts_at_server(bool server);

/* ------------------------------------------------------------------------
 * What is host two's.
 */

enum { MOST = 4096 };

static pthread_mutex_t things_lock = PTHREAD_MUTEX_INITIALIZER;
static const void *things[MOST];
static unsigned int num_things;

/* Its contexts, and what inline functions called there. */
static struct {
	struct ibv_context *context;
	struct ibv_context_ops ops;
} contexts[64];
static unsigned int num_contexts;

static bool has(const void *thing)
{
	bool found = false;

	pthread_mutex_lock(&things_lock);
	for (unsigned int i = 0; i < num_things && !found; i++)
		found = things[i] == thing;
	pthread_mutex_unlock(&things_lock);
	return found;
}

static void learn(const void *thing)
{
	if (!thing || has(thing))
		return;
	pthread_mutex_lock(&things_lock);
	if (num_things == MOST)
		abort();
	things[num_things++] = thing;
	pthread_mutex_unlock(&things_lock);
}

static void forget(const void *thing)
{
	pthread_mutex_lock(&things_lock);
	for (unsigned int i = 0; i < num_things; i++)
		if (things[i] == thing)
			things[i--] = things[--num_things];
	pthread_mutex_unlock(&things_lock);
}

static enum host host_of(const void *thing)
{
	return thing && has(thing) ? TWO : ONE;
}

/* Of a PD, a QP and so on. */
#define HOST_OF(thing) ((thing) ? host_of((thing)->context) : ONE)

static _Thread_local enum host here;	/* where what comes from nowhere is made */
static _Thread_local enum host is_at;	/* the thread */

void two_hosts_at_server(bool server)
{
	here = server ? TWO : ONE;
}

/* ------------------------------------------------------------------------
 * Going there.
 */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int network[2];
static void *polycm[2];
static int *(*errno_of_two)(void);

static void fail(const char *what)
{
	const char *reason = dlerror();

	fprintf(stderr, "two hosts: %s: %s\n", what, reason ? reason : strerror(errno));
	_exit(99);
}

static void go(enum host host)
{
	if (is_at != host && setns(network[host], CLONE_NEWNET))
		fail("setns");
	is_at = host;
}

static void *stay(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/*
 * The process's own C library does not count the threads that the other one starts.  While it knows
 * of none, it takes locks that both have, the dynamic linker's, without looking for others.
 */
static void be_many(void)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	errno = pthread_create(&thread, NULL, stay, NULL);
	if (errno)
		fail("pthread_create");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void start(void)
{
	const char *file = getenv("SCENARIO_HOST_TWO"), *library = getenv("SCENARIO_LIBPOLYCM");
	void *function;

	if (!file || !library)
		fail("SCENARIO_HOST_TWO or SCENARIO_LIBPOLYCM is unset");
	network[ONE] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	network[TWO] = open(file, O_RDONLY | O_CLOEXEC);
	if (network[ONE] < 0 || network[TWO] < 0)
		fail(file);
	be_many();
	polycm[ONE] = RTLD_NEXT;
	go(TWO);
	polycm[TWO] = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
	go(ONE);
	if (!polycm[TWO] || !(function = dlsym(polycm[TWO], "__errno_location")))
		fail(library);
	memcpy(&errno_of_two, &function, sizeof(function));
}

/* Threads that the C library there has not started have to be told to it. */
static void introduce(void)
{
	static _Thread_local bool known;
	void (*init)(void);
	void *function;

	if (known)
		return;
	known = true;
	function = dlsym(polycm[TWO], "__ctype_init");
	if (!function)
		fail("__ctype_init");
	memcpy(&init, &function, sizeof(function));
	init();
}

/* Returns where the thread was. */
static enum host enter(enum host host)
{
	enum host before;

	pthread_once(&once, start);
	before = is_at;
	go(host);
	if (host == TWO) {
		introduce();
		*errno_of_two() = errno;
	}
	return before;
}

static void leave(enum host host, enum host before)
{
	int error = host == TWO ? *errno_of_two() : errno;

	go(before);
	errno = error;
}

static void find(enum host host, const char *name, void *ret_function)
{
	void *function;

	pthread_once(&once, start);
	function = dlsym(polycm[host], name);
	if (!function)
		fail(name);
	memcpy(ret_function, &function, sizeof(function));
}

/* ------------------------------------------------------------------------
 * Inline functions.
 */

static const struct ibv_context_ops *real_ops(const struct ibv_context *context)
{
	const struct ibv_context_ops *ops = NULL;

	pthread_mutex_lock(&things_lock);
	for (unsigned int i = 0; i < num_contexts && !ops; i++)
		if (contexts[i].context == context)
			ops = &contexts[i].ops;
	pthread_mutex_unlock(&things_lock);
	if (!ops)
		abort();
	return ops;
}

#define THERE(expression)                                                                          \
	({                                                                                         \
		enum host before = enter(TWO);                                                     \
		int result = (expression);                                                         \
											   \
		leave(TWO, before);                                                                \
		result;                                                                            \
	})

static int poll_there(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	return THERE(real_ops(cq->context)->poll_cq(cq, num, wc));
}

static int arm_there(struct ibv_cq *cq, int solicited_only)
{
	return THERE(real_ops(cq->context)->req_notify_cq(cq, solicited_only));
}

static int send_there(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return THERE(real_ops(qp->context)->post_send(qp, wr, bad));
}

static int receive_there(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return THERE(real_ops(qp->context)->post_recv(qp, wr, bad));
}

static int srq_receive_there(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return THERE(real_ops(srq->context)->post_srq_recv(srq, wr, bad));
}

static void learn_context(struct ibv_context *context)
{
	if (!context || context->ops.poll_cq == poll_there)
		return;
	learn(context);
	learn(context->device);
	pthread_mutex_lock(&things_lock);
	if (num_contexts == sizeof(contexts) / sizeof(contexts[0]))
		abort();
	contexts[num_contexts].context = context;
	contexts[num_contexts++].ops = context->ops;
	pthread_mutex_unlock(&things_lock);
	context->ops.poll_cq = poll_there;
	context->ops.req_notify_cq = arm_there;
	context->ops.post_send = send_there;
	context->ops.post_recv = receive_there;
	context->ops.post_srq_recv = srq_receive_there;
}

static void forget_context(struct ibv_context *context)
{
	forget(context);
	pthread_mutex_lock(&things_lock);
	for (unsigned int i = 0; i < num_contexts; i++)
		if (contexts[i].context == context)
			contexts[i--] = contexts[--num_contexts];
	pthread_mutex_unlock(&things_lock);
}

static void learn_id(struct rdma_cm_id *id)
{
	if (!id)
		return;
	learn(id);
	learn(id->channel);	/* of its own, where it is synchronous */
	learn_context(id->verbs);
}

static void learn_event(struct rdma_cm_event *event)
{
	learn(event);
	learn_id(event->id);
}

/* ------------------------------------------------------------------------
 * The calls.  then: what is learnt of it if the call was host two's and returned.
 */

#define CALL(type, name, on, parameters, arguments, then)                                        \
	EXPORT type name parameters                                                                \
	{                                                                                          \
		static __typeof__(&name) functions[2];                                             \
		enum host where = (on), before;                                                     \
		type result;                                                                       \
											   \
		if (!functions[where])                                                             \
			find(where, #name, &functions[where]);                                     \
		before = enter(where);                                                             \
		result = functions[where] arguments;                                               \
		leave(where, before);                                                              \
		if (where == TWO) {                                                                \
			then;                                                                      \
		}                                                                                  \
		return result;                                                                     \
	}

#define CALL_VOID(name, on, parameters, arguments)                                               \
	EXPORT void name parameters                                                                \
	{                                                                                          \
		static __typeof__(&name) functions[2];                                             \
		enum host where = (on), before;                                                     \
											   \
		if (!functions[where])                                                             \
			find(where, #name, &functions[where]);                                     \
		before = enter(where);                                                             \
		functions[where] arguments;                                                        \
		leave(where, before);                                                              \
	}

/* Taken off before it is destroyed: its memory may be another one's at once. */
static enum host last_host_of(const void *thing)
{
	enum host host = host_of(thing);

	forget(thing);
	return host;
}

static enum host last_host_of_context(struct ibv_context *context)
{
	enum host host = host_of(context);

	forget_context(context);
	return host;
}

/* That a call with an id gives it a device is seen at the next one with it. */
static enum host host_of_id(struct rdma_cm_id *id)
{
	enum host host = host_of(id);

	if (host == TWO)
		learn_id(id);
	return host;
}

static enum host last_host_of_id(struct rdma_cm_id *id)
{
	return host_of_id(id) == TWO ? last_host_of(id) : ONE;
}

static enum host host_of_info(const struct rdma_addrinfo *info)
{
	return info && info->ai_flags & RAI_PASSIVE ? TWO : ONE;
}

#define ID struct rdma_cm_id *id

CALL(struct rdma_event_channel *, rdma_create_event_channel, here, (void), (), learn(result))
CALL_VOID(rdma_destroy_event_channel, last_host_of(channel), (struct rdma_event_channel *channel),
	(channel))
CALL(int, rdma_create_id, channel ? host_of(channel) : here,
	(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	 enum rdma_port_space ps), (channel, id, context, ps), if (!result) learn_id(*id))
CALL(int, rdma_create_ep, host_of_info(info),
	(struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
	 struct ibv_qp_init_attr *attr), (id, info, pd, attr), if (!result) learn_id(*id))
CALL_VOID(rdma_destroy_ep, last_host_of_id(id), (ID), (id))
CALL(int, rdma_destroy_id, last_host_of_id(id), (ID), (id), if (result) learn(id))
CALL(int, rdma_bind_addr, host_of(id), (ID, struct sockaddr *addr), (id, addr), learn_id(id))
CALL(int, rdma_resolve_addr, host_of(id),
	(ID, struct sockaddr *from, struct sockaddr *to, int ms), (id, from, to, ms),
	learn_id(id))
CALL(int, rdma_resolve_route, host_of(id), (ID, int ms), (id, ms), learn_id(id))
CALL(int, rdma_create_qp, host_of_id(id), (ID, struct ibv_pd *pd, struct ibv_qp_init_attr *attr),
	(id, pd, attr), learn_id(id))
CALL(int, rdma_create_qp_ex, host_of_id(id), (ID, struct ibv_qp_init_attr_ex *attr), (id, attr),
	learn_id(id))
CALL_VOID(rdma_destroy_qp, host_of_id(id), (ID), (id))
CALL(int, rdma_create_srq, host_of_id(id),
	(ID, struct ibv_pd *pd, struct ibv_srq_init_attr *attr), (id, pd, attr), learn_id(id))
CALL_VOID(rdma_destroy_srq, host_of_id(id), (ID), (id))
CALL(int, rdma_connect, host_of_id(id), (ID, struct rdma_conn_param *param), (id, param),
	learn_id(id))
CALL(int, rdma_establish, host_of_id(id), (ID), (id), learn_id(id))
CALL(int, rdma_listen, host_of_id(id), (ID, int backlog), (id, backlog), learn_id(id))
CALL(int, rdma_get_request, host_of_id(id), (ID, struct rdma_cm_id **child), (id, child),
	if (!result) learn_id(*child))
CALL(int, rdma_accept, host_of_id(id), (ID, struct rdma_conn_param *param), (id, param),
	learn_id(id))
CALL(int, rdma_reject, host_of_id(id), (ID, const void *data, uint8_t len), (id, data, len),
	learn_id(id))
CALL(int, rdma_reject_ece, host_of_id(id), (ID, const void *data, uint8_t len), (id, data, len),
	learn_id(id))
CALL(int, rdma_notify, host_of_id(id), (ID, enum ibv_event_type event), (id, event), learn_id(id))
CALL(int, rdma_disconnect, host_of_id(id), (ID), (id), learn_id(id))
CALL(int, rdma_join_multicast, host_of_id(id), (ID, struct sockaddr *addr, void *context),
	(id, addr, context), learn_id(id))
CALL(int, rdma_join_multicast_ex, host_of_id(id),
	(ID, struct rdma_cm_join_mc_attr_ex *attr, void *context), (id, attr, context),
	learn_id(id))
CALL(int, rdma_leave_multicast, host_of_id(id), (ID, struct sockaddr *addr), (id, addr),
	learn_id(id))
CALL(int, rdma_get_cm_event, host_of(channel),
	(struct rdma_event_channel *channel, struct rdma_cm_event **event), (channel, event),
	if (!result) learn_event(*event))
CALL(int, rdma_ack_cm_event, last_host_of(event), (struct rdma_cm_event *event), (event), )
CALL(__be16, rdma_get_src_port, host_of_id(id), (ID), (id), )
CALL(__be16, rdma_get_dst_port, host_of_id(id), (ID), (id), )
CALL(int, rdma_set_option, host_of_id(id), (ID, int level, int option, void *value, size_t len),
	(id, level, option, value, len), )
CALL(int, rdma_migrate_id, host_of_id(id), (ID, struct rdma_event_channel *channel),
	(id, channel), learn_id(id))
CALL(int, rdma_getaddrinfo, host_of_info(hints),
	(const char *node, const char *service, const struct rdma_addrinfo *hints,
	 struct rdma_addrinfo **info), (node, service, hints, info), if (!result) learn(*info))
CALL_VOID(rdma_freeaddrinfo, last_host_of(info), (struct rdma_addrinfo *info), (info))
CALL(struct ibv_context **, rdma_get_devices, here, (int *num), (num), learn(result))
CALL_VOID(rdma_free_devices, last_host_of(list), (struct ibv_context **list), (list))
CALL(int, rdma_init_qp_attr, host_of_id(id), (ID, struct ibv_qp_attr *attr, int *mask),
	(id, attr, mask), )
CALL(int, rdma_set_local_ece, host_of_id(id), (ID, struct ibv_ece *ece), (id, ece), )
CALL(int, rdma_get_remote_ece, host_of_id(id), (ID, struct ibv_ece *ece), (id, ece), )

CALL(struct ibv_context *, ibv_open_device, host_of(device), (struct ibv_device *device),
	(device), learn_context(result))
CALL(int, ibv_close_device, last_host_of_context(context), (struct ibv_context *context),
	(context), )
CALL(int, ibv_query_device, host_of(context),
	(struct ibv_context *context, struct ibv_device_attr *attr), (context, attr), )
CALL(int, ibv_query_port, host_of(context),
	(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr),
	(context, port, attr), )
CALL(struct ibv_pd *, ibv_alloc_pd, host_of(context), (struct ibv_context *context), (context), )
CALL(int, ibv_dealloc_pd, HOST_OF(pd), (struct ibv_pd *pd), (pd), )
CALL(struct ibv_mr *, ibv_reg_mr, HOST_OF(pd),
	(struct ibv_pd *pd, void *addr, size_t len, int access), (pd, addr, len, access), )
CALL(int, ibv_dereg_mr, HOST_OF(mr), (struct ibv_mr *mr), (mr), )
CALL(struct ibv_cq *, ibv_create_cq, host_of(context),
	(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
	 int vector), (context, cqe, cq_context, channel, vector), )
CALL(int, ibv_destroy_cq, HOST_OF(cq), (struct ibv_cq *cq), (cq), )
CALL(struct ibv_srq *, ibv_create_srq, HOST_OF(pd),
	(struct ibv_pd *pd, struct ibv_srq_init_attr *attr), (pd, attr), )
CALL(int, ibv_destroy_srq, HOST_OF(srq), (struct ibv_srq *srq), (srq), )
CALL(struct ibv_qp *, ibv_create_qp, HOST_OF(pd),
	(struct ibv_pd *pd, struct ibv_qp_init_attr *attr), (pd, attr), )
CALL(int, ibv_destroy_qp, HOST_OF(qp), (struct ibv_qp *qp), (qp), )
CALL(int, ibv_query_qp, HOST_OF(qp),
	(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),
	(qp, attr, mask, init), )
CALL(int, ibv_modify_qp, HOST_OF(qp), (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),
	(qp, attr, mask), )
CALL(struct ibv_ah *, ibv_create_ah, HOST_OF(pd), (struct ibv_pd *pd, struct ibv_ah_attr *attr),
	(pd, attr), )
CALL(int, ibv_destroy_ah, HOST_OF(ah), (struct ibv_ah *ah), (ah), )
