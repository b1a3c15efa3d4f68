/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/libfabric_open.c - finding a provider of libfabric, and opening an endpoint. */
#include "config.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfabric.h"

#define API_VERSION FI_VERSION(1, 17)

static void close_fid(void *fid)
{
	if (fid)
		(void)fi_close(fid);
}

void libfabric_close(struct ofi_carrier *c)
{
	close_fid(c->ep ? &c->ep->fid : NULL);
	close_fid(c->mr ? &c->mr->fid : NULL);
	close_fid(c->av ? &c->av->fid : NULL);
	close_fid(c->cq ? &c->cq->fid : NULL);
	close_fid(c->domain ? &c->domain->fid : NULL);
	close_fid(c->fabric ? &c->fabric->fid : NULL);
	if (c->info)
		fi_freeinfo(c->info);
	free(c->memory);
	free(c);
}

static struct fi_info *make_hints(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	/* No threads of its own, which take the processors from programs that poll (sockets). */
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      FI_MR_ENDPOINT;
	return hints;
}

/* Whatever the hints say: never what this process may itself be, nor what only looks on. */
static bool is_usable(const struct fi_info *info)
{
	const char *name = info->fabric_attr->prov_name;

	return name && !strstr(name, "verbs") && !strstr(name, "hook") &&
	       info->ep_attr->max_msg_size >= OFI_CARRIER_MESSAGE;
}

bool libfabric_is_ip(const struct fi_info *info)
{
	return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6;
}

static int look_up(struct fi_info *hints, struct fi_info **ret_info)
{
	struct fi_info *list, **at;
	int r;

	r = fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &list);
	if (r)
		return r;
	for (at = &list; *at && !is_usable(*at); at = &(*at)->next)
		;
	*ret_info = *at;
	if (*at) {
		*at = (*at)->next;
		(*ret_info)->next = NULL;
	}
	fi_freeinfo(list);
	return *ret_info ? 0 : -FI_ENODATA;
}

static int find(const char *provider, const struct sockaddr *source, socklen_t source_len,
		struct fi_info **ret_info)
{
	struct fi_info *hints = make_hints(provider), *any;
	int r;

	if (!hints || !hints->fabric_attr->prov_name) {
		if (hints)
			fi_freeinfo(hints);
		return -ENOMEM;
	}
	r = look_up(hints, ret_info);
	if (r || !libfabric_is_ip(*ret_info) || !source_len)
		goto out;
	/* Of several interfaces, the one on which the peers are. */
	any = *ret_info;
	hints->addr_format = source->sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	hints->src_addr = malloc(source_len);
	if (hints->src_addr) {
		memcpy(hints->src_addr, source, source_len);
		hints->src_addrlen = source_len;
	}
	r = look_up(hints, ret_info);
	fi_freeinfo(any);
out:
	fi_freeinfo(hints);
	return r;
}

static int open_cq(struct ofi_carrier *c)
{
	struct fi_cq_attr attr = {
		.size = (size_t)4 * OFI_CARRIER_BUFFERS,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
	};
	int r;

	c->fd = -1;
	r = fi_cq_open(c->domain, &attr, &c->cq, NULL);
	if (!r && !fi_control(&c->cq->fid, FI_GETWAIT, &c->fd))
		return 0;
	if (!r)
		fi_close(&c->cq->fid);
	c->cq = NULL;
	c->fd = -1;
	attr.wait_obj = FI_WAIT_NONE;
	return fi_cq_open(c->domain, &attr, &c->cq, NULL);
}

static int open_endpoint(struct ofi_carrier *c)
{
	struct fi_av_attr av = { .type = c->info->domain_attr->av_type };
	int r;

	r = fi_fabric(c->info->fabric_attr, &c->fabric, NULL);
	if (!r)
		r = fi_domain(c->fabric, c->info, &c->domain, NULL);
	if (!r)
		r = open_cq(c);
	if (!r)
		r = fi_av_open(c->domain, &av, &c->av, NULL);
	if (!r)
		r = fi_endpoint(c->domain, c->info, &c->ep, NULL);
	if (!r)
		r = fi_ep_bind(c->ep, &c->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!r)
		r = fi_ep_bind(c->ep, &c->av->fid, 0);
	if (!r)
		r = fi_enable(c->ep);
	if (!r)
		r = libfabric_make_buffers(c);
	return r;
}

/* The names of both sides must be the same: what the provider is asked for, and what it speaks. */
static int fill_name(const struct ofi_carrier *c, const char *provider,
		     struct ofi_carrier_name *ret_name)
{
	size_t len = sizeof(ret_name->name);
	int r;

	memset(ret_name, 0, sizeof(*ret_name));
	snprintf(ret_name->provider, sizeof(ret_name->provider), "%s", provider);
	snprintf(ret_name->protocol, sizeof(ret_name->protocol), "%s/%u.%u",
		 c->info->fabric_attr->prov_name, c->info->ep_attr->protocol,
		 c->info->ep_attr->protocol_version);
	ret_name->format = c->info->addr_format;
	r = fi_getname(&c->ep->fid, ret_name->name, &len);
	if (r || len > sizeof(ret_name->name))
		return r ? r : -EMSGSIZE;
	ret_name->len = (uint16_t)len;
	return 0;
}

static int open_one(const char *provider, const struct sockaddr *source, socklen_t source_len,
		    const struct ofi_carrier_user *user, struct ofi_carrier **ret_carrier,
		    struct ofi_carrier_name *ret_name)
{
	struct ofi_carrier *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->user = user;
	r = find(provider, source, source_len, &c->info);
	if (!r)
		r = open_endpoint(c);
	if (!r)
		r = fill_name(c, provider, ret_name);
	if (r) {
		libfabric_close(c);
		return r;
	}
	*ret_carrier = c;
	return 0;
}

int libfabric_open(const char *const *providers, unsigned int num, const struct sockaddr *source,
			socklen_t source_len, const struct ofi_carrier_user *user,
			struct ofi_carrier **ret_carrier, struct ofi_carrier_name *ret_name,
			char ret_why[OFI_CARRIER_WHY])
{
	size_t at = 0;
	int r = -FI_ENODATA;

	for (unsigned int i = 0; i < num; i++) {
		r = open_one(providers[i], source, source_len, user, ret_carrier, ret_name);
		if (!r)
			return 0;
		if (at < OFI_CARRIER_WHY)
			at += (size_t)snprintf(ret_why + at, OFI_CARRIER_WHY - at, "%s%s: %s",
					       i ? ", " : "", providers[i],
					       r == -FI_ENODATA ? "not there" : fi_strerror(-r));
	}
	return libfabric_error(r) ? libfabric_error(r) : -ENODEV;
}
