/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/shadow.c - the end of shadows: ids that the program does not see, by which a
 * listener on a wildcard address listens in further providers (api/rdma_listen.c).
 */
#include "config.h"
#include "id_internal.h"

void polycm_shadows_close(struct polycm_id *id)
{
	struct polycm_channel *chan;
	struct polycm_id *shadow;

	if (!id->shadows)
		return;
	chan = polycm_channel_lock(id);
	for (shadow = id->shadows; shadow; shadow = shadow->next_shadow)
		shadow->closing = true;
	polycm_channel_unlock(chan);

	for (shadow = id->shadows; shadow; shadow = shadow->next_shadow) {
		if (!shadow->module)
			continue;
		shadow->module->ops.close(shadow->priv);
		shadow->module->ops.stop(shadow->priv);
	}
}

void polycm_shadows_free(struct polycm_id *id)
{
	struct polycm_id *shadow;

	while ((shadow = id->shadows)) {
		id->shadows = shadow->next_shadow;
		if (shadow->module)
			shadow->module->ops.free(shadow->priv);
		polycm_id_free(shadow);
	}
}
