/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/waiting.c - what a program waits for that waits on a descriptor of the
 * NIC's, in words: for the log line about a wait that nothing can end.
 */
#include "config.h"

#include <stdio.h>

#include "context.h"
#include "notify.h"
#include "refuse.h"

static const char *armed_text(const struct sim_cq *cq)
{
	switch (atomic_load(&cq->armed)) {
	case CQ_ARMED:
		return "armed";
	case CQ_ARMED_SOLICITED:
		return "armed for solicited events";
	default:
		return "not armed by ibv_req_notify_cq";
	}
}

static void describe_cqs(const struct sim_context *context, const struct sim_channel *channel,
			 char *text, size_t size)
{
	const struct nic_list *node, *all = &context->objects[NIC_CQ];
	size_t len = 0;

	snprintf(text, size, "no CQ is on it");
	for (node = all->next; node != all && len < size; node = node->next) {
		const struct sim_cq *cq = nic_container(node, struct sim_cq, node);
		unsigned int entries = atomic_load(&cq->head) - atomic_load(&cq->tail);

		if (cq->pub.cq.channel != &channel->pub)
			continue;
		len += (size_t)snprintf(text + len, size - len,
					"%sCQ of %u queues, %s, %u completions in it",
					len ? ", " : "", cq->users, armed_text(cq), entries);
	}
}

static bool owns(const struct sim_context *context, int fd, char *text, size_t size)
{
	const char *device = context->verbs.context.device->name;
	const struct nic_list *node, *all = &context->objects[NIC_CHANNEL];
	size_t len;

	if (*context->notify.program_fd == fd) {
		snprintf(text, size, "asynchronous events of %s on descriptor %d", device, fd);
		return true;
	}
	for (node = all->next; node != all; node = node->next) {
		const struct sim_channel *channel = nic_container(node, struct sim_channel, node);

		if (*channel->notify.program_fd != fd)
			continue;
		len = (size_t)snprintf(text, size, "completion channel of %s on descriptor %d: ",
				       device, fd);
		if (len < size)
			describe_cqs(context, channel, text + len, size - len);
		return true;
	}
	return false;
}

bool sim_nic_owns_fd(int fd, char *text, size_t size)
{
	const struct nic_list *node;

	for (node = nic_contexts.next; node != &nic_contexts; node = node->next)
		if (owns(nic_container(node, struct sim_context, node), fd, text, size))
			return true;
	return false;
}

void nic_tell_deadlock(const char *call, int fd)
{
	char text[256];
	bool found;

	sim_lock();
	found = sim_nic_owns_fd(fd, text, sizeof(text));
	sim_unlock();
	nic_log(POLYCM_LOG_ERROR, "%s waits for what can never happen: %s", call,
		found ? text : "its object is gone");
}
