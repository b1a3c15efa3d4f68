/* SPDX-License-Identifier: BSD-2-Clause */
/* list_folder.h - what is in a folder.  For the library and its plugins; not installed. */
#ifndef LIST_FOLDER_H
#define LIST_FOLDER_H

#include <dirent.h>
#include <string.h>

static inline int list_folder_is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static inline int list_folder_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/*
 * As scandir(), without names that begin with a dot, and in one order: alphasort()'s depends on the
 * program's language.
 */
static inline int list_folder(const char *path, struct dirent ***ret_entries)
{
	return scandir(path, ret_entries, list_folder_is_visible, list_folder_by_name);
}

#endif
