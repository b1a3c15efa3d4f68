/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap.h - POLYCM_SIM_PCAP: packets as a capture on their senders' hosts would
 * show them, written with libpcap.  Under the engine's lock.
 *
 * The simulator's own headers are simpler than those of the wire, which are made for
 * the capture.  RoCE and iWARP are Ethernet, a fabric with InfiniBand is ERF.
 */
#ifndef SIM_PCAP_H
#define SIM_PCAP_H

#include <stdbool.h>

extern bool sim_pcap_on;

/* 0, or an error of open(2); -EINVAL: the file has a capture of another kind of link in it. */
int sim_pcap_open(const char *path);
void sim_pcap_close(void);

#endif
