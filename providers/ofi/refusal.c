/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/refusal.c - see refusal.h. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "refusal.h"

#define LOG_PAUSE SIM_MS(10000)

/* Its name, or where it connected from. */
static const char *who(const struct ofi_session *session, char text[INET6_ADDRSTRLEN])
{
	union sim_sockaddr addr = { 0 };
	socklen_t len = sizeof(addr);

	if (session->host)
		return session->host->node->name;
	if (getpeername(session->stream->source.fd, &addr.sa, &len))
		return "?";
	if (addr.sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&addr.in6.sin6_addr))
		return inet_ntop(AF_INET, addr.in6.sin6_addr.s6_addr + 12, text, INET6_ADDRSTRLEN);
	if (addr.sa.sa_family == AF_INET6)
		return inet_ntop(AF_INET6, &addr.in6.sin6_addr, text, INET6_ADDRSTRLEN);
	if (addr.sa.sa_family == AF_INET)
		return inet_ntop(AF_INET, &addr.in.sin_addr, text, INET6_ADDRSTRLEN);
	return "?";
}

/* Once for a host; of those that are none yet, now and then, as anybody may connect. */
static bool may_log(struct ofi_session *session, uint8_t reason)
{
	static uint64_t not_before[OFI_REFUSALS];
	struct sim_remote_host *host = session->host;
	uint64_t now = sim_now();
	bool may;

	if (host) {
		may = !host->refusal_logged;
		host->refusal_logged = true;
		return may;
	}
	may = now >= not_before[reason];
	if (may)
		not_before[reason] = now + LOG_PAUSE;
	return may;
}

void ofi_refusal_log(struct ofi_session *session, bool by_us, uint8_t reason, uint32_t value,
		     const char *text)
{
	static const char *const hints[OFI_REFUSALS] = {
		[OFI_REFUSED_VERSION] = "both need the same version of polycm",
		[OFI_REFUSED_TRANSPORT] = "POLYCM_OFI_TRANSPORT must be the same on both",
		[OFI_REFUSED_RULES] = "the rules of the transport differ: both need the same version "
				      "of polycm and of the transport's plugin",
		[OFI_REFUSED_KEY] = "POLYCM_OFI_KEY must name a file with the same key on both, or be "
				    "unset on both",
		[OFI_REFUSED_MALFORMED] = "what it sent makes no sense",
		[OFI_REFUSED_BUSY] = "it has too many connections",
		[OFI_REFUSED_ADDRESS] = "a host with the same addresses is connected: only one user of "
					"a host can be, and hosts of one address cannot",
	};
	char address[INET6_ADDRSTRLEN], number[16] = "";

	if (!may_log(session, reason))
		return;
	if (value)
		snprintf(number, sizeof(number), " (%u)", value);
	sim_core->log(POLYCM_LOG_ERROR, NULL, "host %s %s: %s%s%s%s", who(session, address),
		      by_us ? "was refused" : "refuses to talk to this one", hints[reason],
		      *text ? ": it plays " : "", text, number);
}
