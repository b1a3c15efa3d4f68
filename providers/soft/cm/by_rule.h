/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/by_rule.h - the answers that a fault rule gives to requests in their receiver's place. */
#ifndef SIM_CM_BY_RULE_H
#define SIM_CM_BY_RULE_H

#include <stdint.h>

struct sim_packet;

/* sim_packet_rejecter_t of MADs: a REJ with that reason to a REQ or REP. */
void ibcm_reject_by_rule(const struct sim_packet *packet, uint16_t reason);
/* Of streams: a reply with the reject flag to an MPA request. */
void iwcm_reject_by_rule(const struct sim_packet *packet, uint16_t reason);

#endif
