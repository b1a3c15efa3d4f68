/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/layers.h - the layers of POLYCM_PROVIDER='trace;fault;roce': what is around
 * the operations and events of all providers that carry connections.
 *
 * In an id's memory each layer has a frame and its area, from the outermost to
 * the innermost, and then comes the provider's area.  What is called on an id
 * gets the first frame for its priv, and goes from frame to frame; what is
 * posted goes the other way.
 */
#ifndef POLYCM_CORE_LAYERS_H
#define POLYCM_CORE_LAYERS_H

#include "registry.h"

/* How many there are: 0 nearly always, and then nothing here is called. */
extern unsigned int polycm_num_layers;

#define polycm_has_layers() __builtin_expect(polycm_num_layers > 0, 0)

/* While the providers are started: around those that are added so far. */
int polycm_layers_add(struct polycm_module *layer);
/* Put all layers around a module's operations. */
void polycm_layers_wrap(struct polycm_module *module);
/* The i-th, from outside. */
struct polycm_module *polycm_layer(unsigned int i);

/* Bytes in front of the provider's area of an id. */
size_t polycm_layers_size(void);
/* A child begins, and ends without having been posted; an opened id does so by itself. */
void polycm_layers_begin(struct polycm_id *id);
void polycm_layers_end(struct polycm_id *id);

/* post_event(), through all layers. */
int polycm_layers_post(struct polycm_id *id, const struct polycm_event *event);

#endif
