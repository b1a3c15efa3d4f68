/* SPDX-License-Identifier: BSD-2-Clause */
/* watch/pcap/pcap_crc.h - the checks of packets on a wire.  Pure functions, under the engine's lock. */
#ifndef SIM_PCAP_CRC_H
#define SIM_PCAP_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Ethernet's, also that of InfiniBand's ICRC; begin with crc 0 or go on with what came out. */
uint32_t sim_crc32(uint32_t crc, const void *data, size_t len);
/* Castagnoli's, of MPA. */
uint32_t sim_crc32c(uint32_t crc, const void *data, size_t len);
/* InfiniBand's VCRC (IBTA vol. 1, 7.8.2). */
uint16_t sim_vcrc(const void *data, size_t len);
/* The Internet's, RFC 1071: sums may be of parts of even length, the first 0; fold at the end. */
uint32_t sim_inet_sum(uint32_t sum, const void *data, size_t len);
uint16_t sim_inet_fold(uint32_t sum);

#endif
