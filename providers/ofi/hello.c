/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/hello.c - the bodies of HELLO, PORTS, CARRIER and REFUSED.
 *
 * A HELLO is: magic and version, which no version changes; the fields of struct ofi_hello; the
 * body of PORTS; the number of carriers and these.  PORTS is: the numbers of ports and of
 * addresses, and these.
 */
#include "config.h"

#include <rdma/rdma_cma.h>

#include "providers/soft/shm/segment.h"
#include "bytes.h"
#include "hello.h"

#define QPN_MAX 0xffffffu

static const uint8_t magic[4] = { 'p', 'c', 'm', 0xf1 };

/* As programs on another host reach it; what is this host's own must not be had from outside. */
static bool is_reachable(const union sim_sockaddr *addr)
{
	const struct sockaddr *sa = &addr->sa;

	return sa->sa_family && !sim_addr_is_zero(sa) && !sim_addr_is_loopback(sa) &&
	       !sim_addr_is_multicast(sa) && !sim_addr_is_mapped(sa) &&
	       !(sa->sa_family == AF_INET && sim_addr_ipv4(sa) == INADDR_BROADCAST);
}

/* ------------------------------------------------------------------------
 * PORTS.
 */

#define PORT_FIELDS(F)										\
	F##_BYTES(guid) F##_BYTES(mac) F##_INT(lid) F##_INT(mtu) F##_INT(active_mtu) F##_BOOL(up)
BYTES_FIELDS(port, struct ofi_port, PORT_FIELDS)

#define ADDRESS_FIELDS(F)									\
	F##_ADDR(addr) F##_INT(prefix_len) F##_INT(port) F##_ZERO(2)
BYTES_FIELDS(address, struct ofi_address, ADDRESS_FIELDS)

static void put_ports(struct bytes_writer *w, const struct ofi_ports *ports)
{
	assert(ports->num_ports <= OFI_MAX_PORTS && ports->num_addresses <= OFI_MAX_ADDRESSES);
	bytes_put_int(w, ports->num_ports, 1);
	bytes_put_int(w, ports->num_addresses, 1);
	bytes_put_zero(w, 2);
	for (unsigned int i = 0; i < ports->num_ports; i++)
		put_port(w, &ports->ports[i]);
	for (unsigned int i = 0; i < ports->num_addresses; i++)
		put_address(w, &ports->addresses[i]);
}

/* A number of things of which there are not more than max; else 0. */
static unsigned int get_number(struct bytes_reader *r, unsigned int max)
{
	unsigned int number = (unsigned int)bytes_get_int(r, 1);

	r->bad |= number > max;
	return r->bad ? 0 : number;
}

static bool is_port(const struct ofi_port *port)
{
	return port->lid <= OFI_MAX_LID && port->active_mtu >= IBV_MTU_256 &&
	       port->active_mtu <= IBV_MTU_4096;
}

static bool is_address(const struct ofi_address *address, unsigned int num_ports)
{
	return is_reachable(&address->addr) && !sim_addr_port(&address->addr.sa) &&
	       address->prefix_len <= (address->addr.sa.sa_family == AF_INET ? 32 : 128) &&
	       address->port < num_ports;
}

/* ports: all 0 so far. */
static void get_ports(struct bytes_reader *r, struct ofi_ports *ports)
{
	ports->num_ports = get_number(r, OFI_MAX_PORTS);
	ports->num_addresses = get_number(r, OFI_MAX_ADDRESSES);
	bytes_get_zero(r, 2);
	for (unsigned int i = 0; i < ports->num_ports; i++) {
		get_port(r, &ports->ports[i]);
		r->bad |= !is_port(&ports->ports[i]);
	}
	for (unsigned int i = 0; i < ports->num_addresses; i++) {
		get_address(r, &ports->addresses[i]);
		r->bad |= !is_address(&ports->addresses[i], ports->num_ports);
	}
}

size_t ofi_ports_encode(const struct ofi_ports *ports, uint8_t bytes[OFI_HELLO_MAX])
{
	struct bytes_writer w = { bytes, OFI_HELLO_MAX };

	put_ports(&w, ports);
	return OFI_HELLO_MAX - w.left;
}

int ofi_ports_decode(const uint8_t *body, size_t len, struct ofi_ports *ret_ports)
{
	struct bytes_reader r = { body, len, false };

	memset(ret_ports, 0, sizeof(*ret_ports));
	get_ports(&r, ret_ports);
	return bytes_complete(&r) ? 0 : -EBADMSG;
}

/* ------------------------------------------------------------------------
 * HELLO.
 */

#define HELLO_FIELDS(F)										\
	F##_BYTES(host) F##_INT(slot) F##_BOOL(has_key) F##_ZERO(1) F##_INT(generation)		\
	F##_TEXT(name) F##_TEXT(transport) F##_INT(rules) F##_INT(token) F##_BYTES(nonce)	\
	F##_INT(want.kind) F##_ZERO(1) F##_INT(want.slot) F##_INT(want.ps) F##_ZERO(2)		\
	F##_INT(want.qpn) F##_ADDR(want.addr)
BYTES_FIELDS(hello, struct ofi_hello, HELLO_FIELDS)

#define CARRIER_FIELDS(F)									\
	F##_TEXT(provider) F##_TEXT(protocol) F##_INT(format) F##_INT(len) F##_ZERO(2)
BYTES_FIELDS(carrier, struct ofi_carrier_name, CARRIER_FIELDS)

static bool is_port_space(uint16_t ps)
{
	return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

/* What its kind has no use for is 0. */
static bool is_want(const struct ofi_want *want)
{
	bool has_addr = want->kind == OFI_WANT_SERVICE || want->kind == OFI_WANT_SOCKET;

	return want->kind < OFI_WANT_KINDS &&
	       want->slot < (want->kind == OFI_WANT_SLOT ? SIM_MAX_SLOTS : 1) &&
	       want->qpn <= (want->kind == OFI_WANT_QPN ? QPN_MAX : 0) &&
	       (want->kind == OFI_WANT_SERVICE ? is_port_space(want->ps) : !want->ps) &&
	       (has_addr ? is_reachable(&want->addr) : !want->addr.sa.sa_family);
}

static void put_name(struct bytes_writer *w, const struct ofi_carrier_name *name)
{
	assert(name->len <= OFI_CARRIER_NAME);
	put_carrier(w, name);
	bytes_put(w, name->name, name->len);
}

static void get_name(struct bytes_reader *r, struct ofi_carrier_name *name)
{
	get_carrier(r, name);
	if (name->len > OFI_CARRIER_NAME)
		r->bad = true;
	else
		bytes_get(r, name->name, name->len);
}

static void put_carriers(struct bytes_writer *w, const struct ofi_hello *hello)
{
	assert(hello->num_carriers <= OFI_MAX_CARRIERS);
	bytes_put_int(w, hello->num_carriers, 1);
	bytes_put_zero(w, 3);
	for (unsigned int i = 0; i < hello->num_carriers; i++)
		put_name(w, &hello->carriers[i]);
}

static void get_carriers(struct bytes_reader *r, struct ofi_hello *hello)
{
	hello->num_carriers = get_number(r, OFI_MAX_CARRIERS);
	bytes_get_zero(r, 3);
	for (unsigned int i = 0; i < hello->num_carriers; i++)
		get_name(r, &hello->carriers[i]);
}

size_t ofi_hello_encode(const struct ofi_hello *hello, uint8_t bytes[OFI_HELLO_MAX])
{
	struct bytes_writer w = { bytes, OFI_HELLO_MAX };

	bytes_put(&w, magic, sizeof(magic));
	bytes_put_int(&w, OFI_VERSION, 4);
	put_hello(&w, hello);
	put_ports(&w, &hello->ports);
	put_carriers(&w, hello);
	return OFI_HELLO_MAX - w.left;
}

int ofi_hello_decode(const uint8_t *body, size_t len, struct ofi_hello *ret_hello,
		     unsigned int *ret_version)
{
	struct bytes_reader r = { body, len, false };
	uint8_t first[sizeof(magic)];

	bytes_get(&r, first, sizeof(first));
	*ret_version = (unsigned int)bytes_get_int(&r, 4);
	if (r.bad || memcmp(first, magic, sizeof(magic)))
		return -EBADMSG;
	if (*ret_version != OFI_VERSION)
		return -EPROTONOSUPPORT;
	memset(ret_hello, 0, sizeof(*ret_hello));
	get_hello(&r, ret_hello);
	get_ports(&r, &ret_hello->ports);
	get_carriers(&r, ret_hello);
	return bytes_complete(&r) && ret_hello->slot < SIM_MAX_SLOTS &&
	       is_want(&ret_hello->want) ? 0 : -EBADMSG;
}

/* ------------------------------------------------------------------------
 * CARRIER.
 */

#define NEWS_FIELDS(F) F##_INT(what) F##_ZERO(1) F##_INT(window) F##_INT(number)
BYTES_FIELDS(news, struct ofi_carrier_news, NEWS_FIELDS)

size_t ofi_carrier_encode(const struct ofi_carrier_news *news, uint8_t bytes[OFI_CARRIER_MAX])
{
	struct bytes_writer w = { bytes, OFI_CARRIER_MAX };

	put_news(&w, news);
	if (news->what == OFI_CARRIER_READY)
		put_name(&w, &news->name);
	return OFI_CARRIER_MAX - w.left;
}

int ofi_carrier_decode(const uint8_t *body, size_t len, struct ofi_carrier_news *ret_news)
{
	struct bytes_reader r = { body, len, false };

	memset(ret_news, 0, sizeof(*ret_news));
	get_news(&r, ret_news);
	if (ret_news->what == OFI_CARRIER_READY)
		get_name(&r, &ret_news->name);
	return bytes_complete(&r) && ret_news->what && ret_news->what < OFI_CARRIER_WHATS ? 0
											  : -EBADMSG;
}

/* ------------------------------------------------------------------------
 * REFUSED, and the proof.
 */

#define REFUSED_FIELDS(F) F##_INT(reason) F##_ZERO(3) F##_INT(value) F##_TEXT(text)
BYTES_BODY(refused, struct ofi_refused, OFI_REFUSED_SIZE, REFUSED_FIELDS,
	   m->reason && m->reason < OFI_REFUSALS)

static void add_digest(struct hmac_sha256 *hmac, const uint8_t *body, size_t len)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 hash;

	sha256_start(&hash);
	sha256_add(&hash, body, len);
	sha256_finish(&hash, digest);
	hmac_sha256_add(hmac, digest, sizeof(digest));
}

void ofi_proof(const void *key, size_t key_len, bool initiator,
	       const uint8_t *hello_of_initiator, size_t len_of_initiator,
	       const uint8_t *hello_of_acceptor, size_t len_of_acceptor,
	       uint8_t ret_proof[SHA256_SIZE])
{
	/* Of one length, and not the same: nobody can send a proof back to where it is from. */
	static const char roles[2][24] = { "polycm ofi 1: acceptor", "polycm ofi 1: initiator" };
	struct hmac_sha256 hmac;

	hmac_sha256_start(&hmac, key, key_len);
	hmac_sha256_add(&hmac, roles[initiator], sizeof(roles[initiator]));
	add_digest(&hmac, hello_of_initiator, len_of_initiator);
	add_digest(&hmac, hello_of_acceptor, len_of_acceptor);
	hmac_sha256_finish(&hmac, ret_proof);
}
