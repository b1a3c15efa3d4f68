/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * multicast.c - scenarios of groups: joining and leaving, flags, kinds of groups.  Most ids have no
 * QP, so that only the group is at stake.
 */
#include "scene.h"

static int context;

/* An id of RDMA_PS_UDP on the client's device. */
static void member(void)
{
	open_scene(RDMA_PS_UDP);
	MUST(rdma_bind_addr(client, at(CLIENT4, ANY_PORT)));
}

/* The event that a join ends in. */
static void joined(void)
{
	struct rdma_cm_event *event = next(client_events);

	if (event)
		say("its context is %s, %u bytes",
		    event->param.ud.private_data == &context ? "ours" : "another",
		    event->param.ud.private_data_len);
}

/* Joins the usual group; false: it cannot be. */
static bool join_group(void)
{
	if (TRY(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), &context)))
		return false;
	joined();
	return true;
}

static void multicast_join(void)
{
	member();
	if (!join_group())
		return;
	show_addresses(client);
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	rest(client_events);
}

static void multicast_with_qp(void)
{
	member();
	make_qp(client);
	show_qp_attr(client);
	if (!join_group())
		return;
	show_qp_attr(client);
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	rest(client_events);
}

static void multicast_resolved(void)
{
	open_scene(RDMA_PS_UDP);
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(MULTICAST4, ANY_PORT), 2000));
	next(client_events);
	show_addresses(client);
	if (!join_group())
		return;
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	rest(client_events);
}

static void multicast_twice(void)
{
	member();
	if (!join_group())
		return;
	join_group();
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	rest(client_events);
	say("and once more");
	join_group();
}

static void multicast_unbound(void)
{
	open_scene(RDMA_PS_UDP);
	TRY_CRASH(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), &context));
	TRY_CRASH(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	rest(client_events);
	say("bound to no device");
	TRY(rdma_bind_addr(client, at(ANY4, ANY_PORT)));
	TRY_CRASH(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), &context));
	rest(client_events);
}

static void multicast_states(void)
{
	open_scene(RDMA_PS_UDP);
	client_finds();
	join_group();
	TRY(rdma_resolve_route(client, 2000));
	next(client_events);
	say("with a route");
	TRY(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), &context));
	server_listens(0);
	say("listening");
	TRY(rdma_join_multicast(server, at(MULTICAST4, ANY_PORT), &context));
	rest(client_events);
	rest(server_events);
}

static void multicast_connected_kind(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, ANY_PORT)));
	TRY(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), &context));
	rest(client_events);
}

static void join_ex(uint32_t comp_mask, uint32_t join_flags)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = comp_mask,
		.join_flags = join_flags,
		.addr = at(MULTICAST4, ANY_PORT),
	};

	say("comp_mask %u, join_flags %u", comp_mask, join_flags);
	if (!TRY(rdma_join_multicast_ex(client, &attr, &context)))
		joined();
}

static void multicast_flags(void)
{
	uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	member();
	join_ex(0, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	join_ex(RDMA_CM_JOIN_MC_ATTR_ADDRESS, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	join_ex(RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	join_ex(both | RDMA_CM_JOIN_MC_ATTR_RESERVED, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	join_ex(both, RDMA_MC_JOIN_FLAG_RESERVED);
	join_ex(both, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	rest(client_events);
}

static void multicast_send_only(void)
{
	uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	member();
	make_qp(client);
	join_ex(both, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	rest(client_events);
}

static void multicast_no_group(void)
{
	member();
	say("wildcard");
	if (!TRY(rdma_join_multicast(client, at(ANY4, ANY_PORT), &context)))
		joined();
	say("an address of a host");
	if (!TRY(rdma_join_multicast(client, at(SERVER4, ANY_PORT), &context)))
		joined();
	say("NULL");
	TRY_CRASH(rdma_join_multicast(client, NULL, &context));
	rest(client_events);
}

static void multicast_ipv6(void)
{
	open_scene(RDMA_PS_UDP);
	TRY(rdma_bind_addr(client, at(CLIENT6, ANY_PORT)));
	if (!TRY(rdma_join_multicast(client, at(MULTICAST6, ANY_PORT), &context)))
		joined();
	say("a group of the other family");
	if (!TRY(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), &context)))
		joined();
	rest(client_events);
}

static void multicast_leave_unknown(void)
{
	member();
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	TRY(rdma_leave_multicast(client, at(MULTICAST6, ANY_PORT)));
	if (!join_group())
		return;
	TRY(rdma_leave_multicast(client, at(MULTICAST4, 3)));
	TRY(rdma_leave_multicast(client, at(SERVER4, ANY_PORT)));
	rest(client_events);
}

static void multicast_leave_before_event(void)
{
	member();
	if (TRY(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), &context)))
		return;
	arrived(client_events);
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
	rest(client_events);
}

static void multicast_destroy(void)
{
	member();
	if (!join_group())
		return;
	say("another one, its event not taken");
	TRY(rdma_join_multicast(client, at(MULTICAST4, 5), &context));
	arrived(client_events);
	DESTROY(client);
	rest(client_events);
}

static void multicast_migrate(void)
{
	struct rdma_event_channel *other_events;

	member();
	other_events = make_channel("other");
	if (!join_group())
		return;
	say("another one, its event not taken");
	TRY(rdma_join_multicast(client, at(MULTICAST4, 5), &context));
	arrived(client_events);
	TRY(rdma_migrate_id(client, other_events));
	rest(client_events);
	rest(other_events);
	TRY(rdma_leave_multicast(client, at(MULTICAST4, 5)));
	TRY(rdma_leave_multicast(client, at(MULTICAST4, ANY_PORT)));
}

const struct scenario multicast_scenarios[] = {
	{ "multicast-join", multicast_join, "joined and left, bound", 0 },
	{ "multicast-with-qp", multicast_with_qp, "joined and left, a QP in the group", 0 },
	{ "multicast-resolved", multicast_resolved, "joined and left, the group resolved", 0 },
	{ "multicast-twice", multicast_twice, "the same group twice", 0 },
	{ "multicast-unbound", multicast_unbound, "on an id without a device", 0 },
	{ "multicast-states", multicast_states, "in other states of the id", 0 },
	{ "multicast-connected-kind", multicast_connected_kind, "on an id of RDMA_PS_TCP", 0 },
	{ "multicast-flags", multicast_flags, "masks and flags that are none", 0 },
	{ "multicast-send-only", multicast_send_only, "joined only to send", 0 },
	{ "multicast-no-group", multicast_no_group, "addresses that are no group", 0 },
	{ "multicast-ipv6", multicast_ipv6, "IPv6 groups", 0 },
	{ "multicast-leave-unknown", multicast_leave_unknown, "groups that were not joined", 0 },
	{ "multicast-leave-before-event", multicast_leave_before_event,
	  "left with the event not taken", 0 },
	{ "multicast-destroy", multicast_destroy, "the id destroyed while in groups", 0 },
	{ "multicast-migrate", multicast_migrate, "to another channel while in groups", 0 },
	{ NULL, NULL, NULL, 0 },
};
