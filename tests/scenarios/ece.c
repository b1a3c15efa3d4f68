/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ece.c - scenarios of enhanced connection establishment, on devices that have no options of their
 * own.
 */
#include "scene.h"

#define VENDOR	    0x15b3
#define OTHER	    0x2c9

static void set_ece(struct rdma_cm_id *id, uint32_t vendor_id, uint32_t options, uint32_t comp_mask)
{
	struct ibv_ece ece = { .vendor_id = vendor_id, .options = options, .comp_mask = comp_mask };

	say("vendor 0x%x, options 0x%x, comp_mask %u", vendor_id, options, comp_mask);
	TRY(rdma_set_local_ece(id, &ece));
}

static void get_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .vendor_id = 77, .options = 77, .comp_mask = 77 };

	if (!TRY(rdma_get_remote_ece(id, &ece)))
		say("  vendor 0x%x, options 0x%x, comp_mask %u", ece.vendor_id, ece.options,
		    ece.comp_mask);
}

static void ece_calls(void)
{
	open_scene(RDMA_PS_TCP);
	get_ece(client);
	set_ece(client, VENDOR, 7, 0);
	set_ece(client, 0, 7, 0);
	set_ece(client, VENDOR, 7, 1);
	set_ece(client, 0xffffffff, 0xffffffff, 0);
	TRY_CRASH(rdma_set_local_ece(client, NULL));
	TRY_CRASH(rdma_get_remote_ece(client, NULL));
	get_ece(client);
	client_finds();
	make_qp(client);
	say("with a QP");
	set_ece(client, VENDOR, 7, 0);
	get_ece(client);
}

/* The client has only the number of a QP, and these options. */
static void ask(uint32_t vendor_id, uint32_t options)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	if (vendor_id)
		set_ece(client, vendor_id, options, 0);
	with.qp_num = own_qp_num(1);
	if (TRY(rdma_connect(client, &with)))
		end_here();
	expect(server_events, CONNECT_REQUEST);
	get_ece(child);
}

static void answer(uint32_t vendor_id, uint32_t options)
{
	struct rdma_conn_param with = param();

	if (vendor_id)
		set_ece(child, vendor_id, options, 0);
	with.qp_num = own_qp_num(2);
	TRY(rdma_accept(child, &with));
	if (next(client_events))
		get_ece(client);
}

static void ece_both(void)
{
	ask(VENDOR, 0x30000007);
	answer(VENDOR, 0x10000003);
	TRY(rdma_establish(client));
	next(server_events);
	get_ece(client);
	get_ece(child);
}

static void ece_other_vendor(void)
{
	ask(VENDOR, 7);
	answer(OTHER, 3);
}

static void ece_long_vendor(void)
{
	ask(0xffffffff, 0xffffffff);
	answer(0, 0);
}

static void ece_not_asked(void)
{
	ask(0, 0);
	answer(VENDOR, 3);
}

/* The library asks and tells the QP, whose device has none. */
static void ece_library_qp(void)
{
	struct rdma_conn_param with = param();

	ask(VENDOR, 7);
	make_qp(child);
	get_ece(child);
	TRY(rdma_accept(child, &with));
	if (next(client_events))
		get_ece(client);
	show_qp(child);
}

/* The one that asked has a QP and no options, the answer has some. */
static void ece_library_qp_answered(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	get_ece(child);
	set_ece(child, VENDOR, 7, 0);
	with.qp_num = own_qp_num(2);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
	show_qp(client);
}

static void ece_reject(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_reject_ece(child, counting, 149));
	TRY(rdma_reject_ece(child, counting, 5));
	TRY(rdma_reject_ece(child, counting, 5));
	rest(client_events);
	show_qp(client);
}

static void ece_reject_unconnected(void)
{
	open_scene(RDMA_PS_TCP);
	TRY_CRASH(rdma_reject_ece(client, NULL, 0));
	client_resolves();
	TRY(rdma_reject_ece(client, NULL, 0));
	rest(client_events);
}

static void ece_ud(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_UDP);
	server_listens(0);
	client_resolves();
	set_ece(client, VENDOR, 7, 0);
	with.qp_num = own_qp_num(1);
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	get_ece(child);
	answer(VENDOR, 3);
}

static void ece_ud_reject(void)
{
	open_scene(RDMA_PS_UDP);
	request(NULL);
	TRY(rdma_reject_ece(child, counting, 5));
	rest(client_events);
}

const struct scenario ece_scenarios[] = {
	{ "ece-calls", ece_calls, "setting and getting, without and with a QP", 0 },
	{ "ece-both", ece_both, "options of both sides", 0 },
	{ "ece-other-vendor", ece_other_vendor, "answered with another vendor's", 0 },
	{ "ece-long-vendor", ece_long_vendor, "a vendor of more than 24 bits; no answer set", 0 },
	{ "ece-not-asked", ece_not_asked, "only the answer has options", 0 },
	{ "ece-library-qp", ece_library_qp, "the passive side has a QP", 0 },
	{ "ece-library-qp-answered", ece_library_qp_answered, "the active side has a QP", 0 },
	{ "ece-reject", ece_reject, "rdma_reject_ece(), too long, twice", 0 },
	{ "ece-reject-unconnected", ece_reject_unconnected, "rdma_reject_ece() of nothing", 0 },
	{ "ece-ud", ece_ud, "datagrams, options of both sides", 0 },
	{ "ece-ud-reject", ece_ud_reject, "datagrams, rdma_reject_ece()", 0 },
	{ NULL, NULL, NULL, 0 },
};
