/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/list.h - lists of objects, and what objects are found by. */
#ifndef SIM_NIC_LIST_H
#define SIM_NIC_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define nic_container(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

struct nic_list {
	struct nic_list *next, *prev;
};

/* For each object of a list, which are linked by `member'; none may go meanwhile. */
#define nic_list_each(object, list, member) \
	for ((object) = nic_container((list)->next, __typeof__(*(object)), member); \
	     &(object)->member != (list); \
	     (object) = nic_container((object)->member.next, __typeof__(*(object)), member))

static inline void nic_list_init(struct nic_list *list)
{
	list->next = list->prev = list;
}

static inline bool nic_list_empty(const struct nic_list *list)
{
	return list->next == list;
}

static inline void nic_list_add(struct nic_list *list, struct nic_list *node)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

static inline void nic_list_del(struct nic_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	nic_list_init(node);
}

static inline uint32_t nic_round_up(uint32_t size)
{
	return size < 2 ? 1 : 1u << (32 - __builtin_clz(size - 1));
}

#endif
