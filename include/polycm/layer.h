/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/layer.h - layers: providers that stand around others.
 *
 * POLYCM_PROVIDER='trace;fault;roce,iwarp' puts the layer trace around the
 * layer fault around each of the providers roce and iwarp.  A layer is a
 * provider whose description points to a struct polycm_layer_ops.  It has an
 * area of its own in each id (id_size bytes) and no rules, devices or channels.
 *
 * What the core calls in a layer:
 *
 *  init, fini	Of struct polycm_ops, as in any provider.  Layers start before
 *		the providers that they are around.
 *  begin	First for each id, those of child_create() too.
 *  open to free
 *		Of struct polycm_ops.  The core calls them instead of those of
 *		what is below.  The layer calls what is below, or does not:
 *
 *			return self->layer->ops->connect(self->layer->priv, param);
 *
 *		An operation that is NULL goes straight to what is below.  close,
 *		stop and free must call what is below.
 *  event	For each event that what is below posts.
 *  end		Last for each id, after free().
 *
 * The operations have the facts of <polycm/provider.h>: legal states, errors,
 * waiting and threads are those of the operation that the layer stands in for.
 */
#ifndef POLYCM_LAYER_H
#define POLYCM_LAYER_H

#include <polycm/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is below a layer, for one id.  Valid from begin() until end() returned. */
struct polycm_layer {
	uint32_t size;
	struct polycm_id *id;		/* for log() */
	const struct polycm_ops *ops;	/* below; no operation that a layer may call is NULL */
	void *ctx;			/* for open() below */
	void *priv;			/* for all others */
	/*
	 * Pass an event on: to the next layer outside, or to the program.
	 * hold_ns: give it to the program so much later, by the core's clock; 0:
	 * now.  What several layers say adds up.  Returns what post_event()
	 * returns.
	 *
	 * A late event is the core's to keep.  It counts as posted at once: the id
	 * of a request is the core's from then on.  What is posted for the same id
	 * after it comes after it.  If the id ends before, the event is dropped.
	 */
	int (*post)(const struct polycm_layer *layer, const struct polycm_event *event,
		    uint64_t hold_ns);
};

/*
 * A layer's own operations.  None is required.
 *
 * Operation  Legal in               Waits  Keeps  Threads  Errors         Posts
 * begin      first of an id         no     layer  id       none           nothing
 * event      from begin to end      no     -      any      post_event()'s what it passes on
 * end        after free, or a child no     -      id       none           nothing
 *            was never posted
 *
 * The words are those of the table in <polycm/provider.h>.  After fork() a child
 * calls none of them for an id of its parent's.
 */
struct polycm_layer_ops {
	uint32_t size;
	/* An id begins.  priv: the layer's area, zeroed.  Keep `layer'. */
	void (*begin)(void *ctx, void *priv, const struct polycm_layer *layer);
	/*
	 * What is below posts an event.  Call layer->post() to pass it on, changed
	 * or not; return without calling it to drop the event.  The result is what
	 * post_event() returns.  For a dropped CONNECT_REQUEST the provider gets
	 * -ENOMEM: the request was not taken.
	 *
	 * May run during an operation and under locks of the provider.  It must
	 * not call operations, nor take a lock that is held around those.  Events
	 * that the core makes itself do not come here: DEVICE_REMOVAL, and the
	 * error event for a provider that did not answer.  NULL: as post().
	 */
	int (*event)(void *priv, const struct polycm_event *event, uint64_t hold_ns);
	/* An id ends, after free(), or a child that was never posted: release what priv refers to. */
	void (*end)(void *priv);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_LAYER_H */
