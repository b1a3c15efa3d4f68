/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/id.c - creates kernel ids, moves them to another channel, destroys them, and
 * replaces those that are on a device that no selected provider claims.
 */
#include "config.h"
#include "internal.h"

#include "core/base/addr.h"

static int create(struct kernel_id *id)
{
	struct rdma_ucm_create_id_resp resp = { .id = KERNEL_NO_NUMBER };
	KERNEL_MESSAGE(rdma_ucm_create_id) message;
	int r;

	memset(&message, 0, sizeof(message));
	message.body.uid = id->handle.uid;
	message.body.response = kernel_pointer(&resp);
	message.body.ps = (uint16_t)id->ps;
	message.body.qp_type = (uint8_t)id->qp_type;
	r = KERNEL_COMMAND(kernel_fd(id->chan), CREATE_ID, message, sizeof(resp));
	if (!r && resp.id == KERNEL_NO_NUMBER)
		r = -ENODATA;
	if (!r) {
		id->number = resp.id;
		id->exists = true;
	} else if (resp.id != KERNEL_NO_NUMBER) {
		(void)kernel_number_destroy(kernel_fd(id->chan), resp.id);
	}
	return r;
}

int kernel_number_end(int fd, uint32_t command, uint32_t number, uint32_t *ret_reported)
{
	struct rdma_ucm_destroy_id_resp resp = { .events_reported = 0 };
	KERNEL_MESSAGE(rdma_ucm_destroy_id) message = {
		.body = { .response = kernel_pointer(&resp), .id = number },
	};
	int r;

	r = kernel_command(fd, command, &message, sizeof(message), sizeof(resp));
	*ret_reported = resp.events_reported;
	return r;
}

uint32_t kernel_number_destroy(int fd, uint32_t number)
{
	uint32_t reported;
	int r = kernel_number_end(fd, RDMA_USER_CM_CMD_DESTROY_ID, number, &reported);

	if (r)
		polycm_log(POLYCM_LOG_DEBUG, "the kernel does not destroy its id %u: %s", number,
			   strerror(-r));
	return reported;
}

static void destroy(struct kernel_id *id)
{
	if (!id->exists)
		return;
	id->exists = false;
	id->reported = kernel_number_destroy(kernel_fd(id->chan), id->number);
}

void kernel_id_strand(struct kernel_id *id)
{
	atomic_store(&id->stranded, true);
}

/*
 * A new kernel id replaces the old one, in the state before it got to the wrong device: with
 * the options set, and bound if it was.
 */
int kernel_id_replace(struct kernel_id *id)
{
	int r;

	destroy(id);
	kernel_handle_settle(&id->handle, id->reported, id->chan);
	atomic_store(&id->handle.done, 0);	/* a new kernel id has no events yet */
	kernel_answer_drop(id);
	atomic_store(&id->routed, false);
	id->reported = 0;

	r = create(id);
	if (!r)
		r = kernel_options_replay(id);
	if (!r && id->bound.sa.sa_family)
		r = kernel_addr_bind(id, &id->bound.sa);
	/* After an error the next operation tries again. */
	atomic_store(&id->stranded, r != 0);
	return r;
}

int kernel_op_open(void *ctx, struct polycm_id *core, void *priv, const struct polycm_open *how)
{
	struct kernel_id *id = priv;
	int r;

	(void)ctx;
	id->core = core;
	id->chan = how->channel_priv;
	id->ps = how->ps;
	id->qp_type = how->qp_type;
	r = kernel_handle_add(&id->handle, NULL);
	if (r)
		return r;
	r = create(id);
	if (r)
		kernel_handle_remove(&id->handle);
	return r;
}

int kernel_id_adopt(struct kernel_id *child, struct polycm_id *core, struct kernel_channel *chan,
		    uint32_t number, const struct kernel_id *listener)
{
	child->core = core;
	child->chan = chan;
	child->number = number;
	child->exists = true;
	child->ps = listener->ps;
	child->qp_type = listener->qp_type;
	child->ib = listener->ib;
	child->asks = true;
	atomic_store(&child->routed, true);
	return kernel_handle_add(&child->handle, NULL);
}

void kernel_id_discard(struct kernel_id *id)
{
	kernel_op_close(id);
	kernel_op_stop(id);
	kernel_op_free(id);
}

/*
 * The command goes to the new descriptor and names the old one.  Readers of the old channel post
 * the events that they have before the id counts as moved.
 */
int kernel_op_migrate(void *priv, void *new_chan)
{
	struct rdma_ucm_migrate_resp resp = { .events_reported = 0 };
	KERNEL_MESSAGE(rdma_ucm_migrate_id) message;
	struct kernel_channel *to = new_chan;
	struct kernel_id *id = priv;
	int r;

	if (id->exists) {
		memset(&message, 0, sizeof(message));
		message.body.response = kernel_pointer(&resp);
		message.body.id = id->number;
		message.body.fd = (uint32_t)kernel_fd(id->chan);
		r = KERNEL_COMMAND(kernel_fd(to), MIGRATE_ID, message, sizeof(resp));
		if (r)
			return r;
		kernel_handle_settle(&id->handle, resp.events_reported, id->chan);
	}
	id->chan = to;
	return 0;
}

void kernel_op_close(void *priv)
{
	destroy(priv);
}

void kernel_op_stop(void *priv)
{
	struct kernel_id *id = priv;
	struct kernel_group *group;

	if (!id->handle.uid)
		return;
	kernel_handle_settle(&id->handle, id->reported, id->chan);
	for (group = id->groups; group; group = group->next)
		kernel_handle_remove(&group->handle);
	kernel_handle_remove(&id->handle);
}

void kernel_op_free(void *priv)
{
	struct kernel_id *id = priv;

	kernel_answer_drop(id);
	if (id->groups)
		kernel_groups_free(id);
}
