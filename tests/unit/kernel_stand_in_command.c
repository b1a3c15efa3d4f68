/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in_command.c - the commands taken apart: lengths and ids are
 * checked as the kernel checks them, orders of the test are carried out, and
 * what only a broken client would write is noted.
 */
#include "kernel_stand_in_command.h"

#include <stdio.h>
#include <stdlib.h>

struct command {
	const char *name;
	size_t in, min_in, min_out;
	int (*fn)(struct si_file *file, const void *cmd, const struct si_reply *reply);
};

int si_respond(const struct si_reply *reply, uint64_t address, const void *response, size_t len)
{
	unsigned char copy[1024];

	if (len > sizeof(copy))
		abort();
	if (!address)
		return -EFAULT;
	if (reply->mute)
		return 0;
	memcpy(copy, response, len);
	if (stand_in.edit)
		stand_in.edit(reply->command, copy, len);
	memcpy((void *)(uintptr_t)address, copy, len < reply->size ? len : reply->size);
	return 0;
}

static int get_id(struct si_file *file, uint32_t number, struct si_id **ret_id)
{
	struct si_id *id = si_id_of(number);

	if (!id)
		return -ENOENT;
	if (id->file != file)
		return -EINVAL;
	*ret_id = id;
	return id->removed ? -ENXIO : 0;
}

/* Of an id that is on a device. */
static int get_id_dev(struct si_file *file, uint32_t number, struct si_id **ret_id)
{
	int r = get_id(file, number, ret_id);

	return r || (*ret_id)->device ? r : -EINVAL;
}

static int create_id(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_create_id *cmd = data;
	struct rdma_ucm_create_id_resp resp;
	uint8_t qp_type = IBV_QPT_RC;
	struct si_id *id;

	switch (cmd->ps) {
	case RDMA_PS_TCP:
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		qp_type = IBV_QPT_UD;
		break;
	case RDMA_PS_IB:
		qp_type = cmd->qp_type;
		break;
	default:
		return -EINVAL;
	}
	if (!cmd->uid)
		si_violation("CREATE_ID without a uid: the kernel would drop its events");
	id = si_id_alloc(file, cmd->uid, cmd->ps, qp_type);
	if (!id)
		return -ENOMEM;
	resp.id = id->id;
	return si_respond(reply, cmd->response, &resp, sizeof(resp));
}

static int destroy_id(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_destroy_id *cmd = data;
	struct rdma_ucm_destroy_id_resp resp;
	struct si_id *id;
	int r = get_id(file, cmd->id, &id);

	if (r && r != -ENXIO)
		return r;
	resp.events_reported = id->reported;
	si_id_free(id);
	return si_respond(reply, cmd->response, &resp, sizeof(resp));
}

static int bind_ip(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_bind_ip *cmd = data;
	size_t size = si_addr_size(&cmd->addr);
	struct si_id *id;
	int r;

	(void)reply;
	if (!size || size > sizeof(cmd->addr))
		return -EINVAL;
	r = get_id(file, cmd->id, &id);
	return r ? r : si_bind(id, &cmd->addr);
}

static int bind_any(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_bind *cmd = data;
	struct si_id *id;
	int r;

	(void)reply;
	if (cmd->reserved || !cmd->addr_size || cmd->addr_size != si_addr_size(&cmd->addr))
		return -EINVAL;
	r = get_id(file, cmd->id, &id);
	return r ? r : si_bind(id, &cmd->addr);
}

static int resolve_ip(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_resolve_ip *cmd = data;
	struct si_id *id;
	int r;

	(void)reply;
	if ((cmd->src_addr.sin6_family && !si_addr_size(&cmd->src_addr)) ||
	    !si_addr_size(&cmd->dst_addr) || si_addr_size(&cmd->dst_addr) > sizeof(cmd->dst_addr))
		return -EINVAL;
	r = get_id(file, cmd->id, &id);
	if (r)
		return r;
	return si_resolve_addr(id, cmd->src_addr.sin6_family ? &cmd->src_addr : NULL,
			       &cmd->dst_addr, cmd->timeout_ms);
}

static int resolve_any(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_resolve_addr *cmd = data;
	struct si_id *id;
	int r;

	(void)reply;
	if (cmd->reserved || (cmd->src_size && cmd->src_size != si_addr_size(&cmd->src_addr)) ||
	    !cmd->dst_size || cmd->dst_size != si_addr_size(&cmd->dst_addr))
		return -EINVAL;
	r = get_id(file, cmd->id, &id);
	if (r)
		return r;
	return si_resolve_addr(id, cmd->src_size ? &cmd->src_addr : NULL, &cmd->dst_addr,
			       cmd->timeout_ms);
}

static int resolve_route(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_resolve_route *cmd = data;
	struct si_id *id;
	int r = get_id_dev(file, cmd->id, &id);

	(void)reply;
	return r ? r : si_resolve_route(id, cmd->timeout_ms);
}

static int query_route(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_query *cmd = data;
	struct si_id *id;
	int r = get_id(file, cmd->id, &id);

	return r ? r : si_query_route(id, cmd->response, reply);
}

static int query(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_query *cmd = data;
	struct si_id *id;
	int r = get_id(file, cmd->id, &id);

	return r ? r : si_query(id, cmd->option, cmd->response, reply);
}

static int do_connect(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_connect *cmd = data;
	struct si_id *id;
	int r;

	(void)reply;
	if (!cmd->conn_param.valid)
		return -EINVAL;
	r = get_id_dev(file, cmd->id, &id);
	if (!r)
		stand_in.connect_len = cmd->conn_param.private_data_len;
	return r ? r : si_connect(id, cmd);
}

static int do_listen(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_listen *cmd = data;
	struct si_id *id;
	int r = get_id(file, cmd->id, &id);

	(void)reply;
	return r ? r : si_listen(id, (int)cmd->backlog);
}

static int do_accept(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_accept *cmd = data;
	struct si_id *id;
	int r = get_id_dev(file, cmd->id, &id);

	(void)reply;
	if (r)
		return r;
	if (!cmd->conn_param.valid)
		return si_establish(id);
	if (!cmd->uid)
		si_violation("ACCEPT without a uid: the kernel would drop its events");
	stand_in.accept_len = cmd->conn_param.private_data_len;
	return si_accept(id, cmd);
}

static int do_reject(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_reject *cmd = data;
	struct si_id *id;
	int r = 0;

	(void)reply;
	if (cmd->reason && cmd->reason != 28 && cmd->reason != 35)
		r = -EINVAL;
	if (!r)
		r = get_id_dev(file, cmd->id, &id);
	stand_in.reject_len = cmd->private_data_len;
	stand_in.reject_reason = cmd->reason;
	return r ? r : si_reject(id, cmd);
}

static int do_disconnect(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_disconnect *cmd = data;
	struct si_id *id;
	int r = get_id_dev(file, cmd->id, &id);

	(void)reply;
	return r ? r : si_disconnect(id);
}

static int init_qp_attr(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_init_qp_attr *cmd = data;
	struct ib_uverbs_qp_attr attr;
	struct si_id *id;
	int r;

	if (cmd->qp_state > IBV_QPS_ERR)
		return -EINVAL;
	r = get_id_dev(file, cmd->id, &id);
	if (!r)
		r = si_init_qp_attr(id, cmd->qp_state, &attr);
	return r ? r : si_respond(reply, cmd->response, &attr, sizeof(attr));
}

static int get_event(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_get_event *cmd = data;
	struct si_event *event;
	int r = si_next_event(file, &event);

	if (r)
		return r;
	event->id->reported++;
	if (event->group)
		event->group->reported++;
	if (event->resp.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		event->id->backlog++;
	if (event->child && stand_in.requests_follow)
		event->child->file = file;
	r = si_respond(reply, cmd->response, &event->resp, sizeof(event->resp));
	free(event);
	return r;
}

static int set_option(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_set_option *cmd = data;
	struct si_id *id;
	int r;

	(void)reply;
	if (cmd->optlen > 1024)
		return -EINVAL;
	r = get_id(file, cmd->id, &id);
	return r ? r : si_set_option(id, cmd);
}

static int do_notify(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_notify *cmd = data;
	struct si_id *id;
	int r = get_id_dev(file, cmd->id, &id);

	(void)reply;
	return r ? r : si_notify(id, cmd->event);
}

static int join(struct si_file *file, uint32_t number, uint64_t uid, const void *addr,
		uint16_t flags, uint64_t response, const struct si_reply *reply)
{
	struct rdma_ucm_create_id_resp resp;
	struct si_id *id;
	int r = get_id_dev(file, number, &id);

	if (!r)
		r = si_join(id, uid, addr, flags, &resp.id);
	return r ? r : si_respond(reply, response, &resp, sizeof(resp));
}

static int join_ip(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_join_ip_mcast *cmd = data;

	if (!si_addr_size(&cmd->addr) || si_addr_size(&cmd->addr) > sizeof(cmd->addr))
		return -EINVAL;
	return join(file, cmd->id, cmd->uid, &cmd->addr, 0, cmd->response, reply);
}

static int join_any(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_join_mcast *cmd = data;

	if (!cmd->addr_size || cmd->addr_size != si_addr_size(&cmd->addr) || cmd->join_flags > 1)
		return -EINVAL;
	return join(file, cmd->id, cmd->uid, &cmd->addr, cmd->join_flags, cmd->response, reply);
}

static int leave(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_destroy_id *cmd = data;
	struct rdma_ucm_destroy_id_resp resp;
	int r = si_leave(file, cmd->id, &resp.events_reported);

	return r ? r : si_respond(reply, cmd->response, &resp, sizeof(resp));
}

/* Written on the new descriptor, with the old one inside. */
static int migrate(struct si_file *file, const void *data, const struct si_reply *reply)
{
	const struct rdma_ucm_migrate_id *cmd = data;
	struct rdma_ucm_migrate_resp resp;
	struct si_file *old = si_file_of(cmd->fd);
	struct si_id *id;
	int r;

	if (!old)
		return -ENOENT;
	r = get_id(old, cmd->id, &id);
	if (r)
		return r;
	if (old != file)
		si_move_events(id, file);
	resp.events_reported = id->reported;
	return si_respond(reply, cmd->response, &resp, sizeof(resp));
}

#define EVENT_MIN offsetof(struct rdma_ucm_event_resp, reserved)
#define ROUTE_MIN offsetof(struct rdma_ucm_query_route_resp, ibdev_index)
#define TAKES(type) sizeof(struct type), sizeof(struct type)

static const struct command commands[STAND_IN_COMMANDS] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = {
		"CREATE_ID", TAKES(rdma_ucm_create_id), 4, create_id },
	[RDMA_USER_CM_CMD_DESTROY_ID] = {
		"DESTROY_ID", TAKES(rdma_ucm_destroy_id), 4, destroy_id },
	[RDMA_USER_CM_CMD_BIND_IP] = { "BIND_IP", TAKES(rdma_ucm_bind_ip), 0, bind_ip },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { "RESOLVE_IP", TAKES(rdma_ucm_resolve_ip), 0, resolve_ip },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {
		"RESOLVE_ROUTE", TAKES(rdma_ucm_resolve_route), 0, resolve_route },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = {
		"QUERY_ROUTE", TAKES(rdma_ucm_query), ROUTE_MIN, query_route },
	[RDMA_USER_CM_CMD_CONNECT] = {
		"CONNECT", sizeof(struct rdma_ucm_connect), offsetof(struct rdma_ucm_connect, ece),
		0, do_connect },
	[RDMA_USER_CM_CMD_LISTEN] = { "LISTEN", TAKES(rdma_ucm_listen), 0, do_listen },
	[RDMA_USER_CM_CMD_ACCEPT] = {
		"ACCEPT", sizeof(struct rdma_ucm_accept), offsetof(struct rdma_ucm_accept, ece),
		0, do_accept },
	[RDMA_USER_CM_CMD_REJECT] = { "REJECT", TAKES(rdma_ucm_reject), 0, do_reject },
	[RDMA_USER_CM_CMD_DISCONNECT] = {
		"DISCONNECT", TAKES(rdma_ucm_disconnect), 0, do_disconnect },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {
		"INIT_QP_ATTR", TAKES(rdma_ucm_init_qp_attr), sizeof(struct ib_uverbs_qp_attr),
		init_qp_attr },
	[RDMA_USER_CM_CMD_GET_EVENT] = {
		"GET_EVENT", TAKES(rdma_ucm_get_event), EVENT_MIN, get_event },
	[RDMA_USER_CM_CMD_GET_OPTION] = { "GET_OPTION", 0, 0, 0, NULL },
	[RDMA_USER_CM_CMD_SET_OPTION] = {
		"SET_OPTION", TAKES(rdma_ucm_set_option), 0, set_option },
	[RDMA_USER_CM_CMD_NOTIFY] = { "NOTIFY", TAKES(rdma_ucm_notify), 0, do_notify },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {
		"JOIN_IP_MCAST", TAKES(rdma_ucm_join_ip_mcast), 4, join_ip },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {
		"LEAVE_MCAST", TAKES(rdma_ucm_destroy_id), 4, leave },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {
		"MIGRATE_ID", TAKES(rdma_ucm_migrate_id), 4, migrate },
	[RDMA_USER_CM_CMD_QUERY] = { "QUERY", TAKES(rdma_ucm_query), 0, query },
	[RDMA_USER_CM_CMD_BIND] = { "BIND", TAKES(rdma_ucm_bind), 0, bind_any },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {
		"RESOLVE_ADDR", TAKES(rdma_ucm_resolve_addr), 0, resolve_any },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { "JOIN_MCAST", TAKES(rdma_ucm_join_mcast), 4, join_any },
};

const char *stand_in_command_name(unsigned int command)
{
	return command < STAND_IN_COMMANDS ? commands[command].name : "?";
}

/* Is it this command's turn to go wrong? */
static struct stand_in_fault take_fault(unsigned int number)
{
	struct stand_in_fault *fault = &stand_in.fault[number], taken = *fault;
	static const struct stand_in_fault none;

	if (fault->after) {
		fault->after--;
		return none;
	}
	if (!fault->always)
		*fault = none;
	return taken;
}

static int run(struct si_file *file, const struct rdma_ucm_cmd_hdr *hdr, const void *data,
	       bool mute)
{
	const struct command *command = &commands[hdr->cmd];
	const struct si_reply reply = { .command = hdr->cmd, .size = hdr->out, .mute = mute };
	/* Commands are read as if they were all there. */
	unsigned char copy[1024] __attribute__((aligned(8))) = { 0 };

	if (!command->fn)
		return -ENOSYS;
	if (hdr->in > command->in)
		si_violation("%s with %u bytes, it has %zu", command->name, hdr->in, command->in);
	if (hdr->in < command->min_in) {
		si_violation("%s with %u bytes only", command->name, hdr->in);
		return -EINVAL;
	}
	if (hdr->out < command->min_out)
		return -ENOSPC;
	memcpy(copy, data, hdr->in < sizeof(copy) ? hdr->in : sizeof(copy));
	return command->fn(file, copy, &reply);
}

ssize_t si_command(struct si_file *file, const void *command, size_t len)
{
	struct stand_in_fault fault;
	struct rdma_ucm_cmd_hdr hdr;
	int r;

	if (len < sizeof(hdr)) {
		si_violation("a command of %zu bytes", len);
		return -EINVAL;
	}
	memcpy(&hdr, command, sizeof(hdr));
	if (hdr.cmd >= STAND_IN_COMMANDS || hdr.cmd >= stand_in.known_commands)
		return -EINVAL;
	if (sizeof(hdr) + hdr.in > len) {
		si_violation("%s: %zu bytes written, %u announced", commands[hdr.cmd].name, len,
			     hdr.in);
		return -EINVAL;
	}
	stand_in.calls[hdr.cmd]++;
	fault = take_fault(hdr.cmd);
	if (fault.error)
		return -fault.error;
	r = run(file, &hdr, (const unsigned char *)command + sizeof(hdr), fault.mute);
	if (r)
		return r;
	return (ssize_t)len - fault.short_result;
}
