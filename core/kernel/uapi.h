/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/uapi.h - the commands of the kernel's RDMA CM.
 *
 * <rdma/rdma_user_cm.h> and <rdma/rdma_cma.h> define some enumerators of the
 * same name and value; the kernel's get other names here.
 */
#ifndef POLYCM_CORE_KERNEL_UAPI_H
#define POLYCM_CORE_KERNEL_UAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

#define RDMA_PS_IPOIB				UAPI_PS_IPOIB
#define RDMA_PS_IB				UAPI_PS_IB
#define RDMA_PS_TCP				UAPI_PS_TCP
#define RDMA_PS_UDP				UAPI_PS_UDP
#define RDMA_OPTION_ID				UAPI_OPTION_ID
#define RDMA_OPTION_IB				UAPI_OPTION_IB
#define RDMA_OPTION_ID_TOS			UAPI_OPTION_ID_TOS
#define RDMA_OPTION_ID_REUSEADDR		UAPI_OPTION_ID_REUSEADDR
#define RDMA_OPTION_ID_AFONLY			UAPI_OPTION_ID_AFONLY
#define RDMA_OPTION_ID_ACK_TIMEOUT		UAPI_OPTION_ID_ACK_TIMEOUT
#define RDMA_OPTION_IB_PATH			UAPI_OPTION_IB_PATH
#define RDMA_MC_JOIN_FLAG_FULLMEMBER		UAPI_MC_JOIN_FLAG_FULLMEMBER
#define RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER	UAPI_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
#define RDMA_MC_JOIN_FLAG_RESERVED		UAPI_MC_JOIN_FLAG_RESERVED
#include <rdma/rdma_user_cm.h>
#undef RDMA_PS_IPOIB
#undef RDMA_PS_IB
#undef RDMA_PS_TCP
#undef RDMA_PS_UDP
#undef RDMA_OPTION_ID
#undef RDMA_OPTION_IB
#undef RDMA_OPTION_ID_TOS
#undef RDMA_OPTION_ID_REUSEADDR
#undef RDMA_OPTION_ID_AFONLY
#undef RDMA_OPTION_ID_ACK_TIMEOUT
#undef RDMA_OPTION_IB_PATH
#undef RDMA_MC_JOIN_FLAG_FULLMEMBER
#undef RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
#undef RDMA_MC_JOIN_FLAG_RESERVED

/* Any address that the kernel takes. */
union kernel_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
};

static inline bool kernel_is_loopback(const union kernel_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

/* A command as it is written: `body' follows the header without a gap. */
#define KERNEL_MESSAGE(type)                                                                       \
	struct {                                                                                   \
		struct rdma_ucm_cmd_hdr hdr;                                                       \
		struct type body;                                                                  \
	}

_Static_assert(sizeof(struct rdma_ucm_cmd_hdr) % 8 == 0, "a body of any alignment may follow");

/* To where the kernel writes. */
static inline uint64_t kernel_pointer(void *pointer)
{
	return (uintptr_t)pointer;
}

#endif
