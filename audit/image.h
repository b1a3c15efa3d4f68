/* SPDX-License-Identifier: BSD-2-Clause */
/* image.h - a loaded object as its dynamic section shows it: names, symbols, versions. */
#ifndef AUDIT_IMAGE_H
#define AUDIT_IMAGE_H

#include <link.h>
#include <stdbool.h>

bool audit_same(const char *a, const char *b);
bool audit_begins(const char *text, const char *start);
/* What comes behind the last slash. */
const char *audit_file_name(const char *path);

/* Its DT_SONAME, or the last part of its path. */
const char *audit_soname(const struct link_map *map);

/* The version of the symbol with that index; NULL: it has none. */
const char *audit_version(const struct link_map *map, unsigned int index);

/*
 * The address of the function that the object defines under that name and version, or 0.  As for
 * the dynamic linker, NULL and a definition without a version match any.
 */
ElfW(Addr) audit_find(const struct link_map *map, const char *name, const char *version);

/*
 * Makes the object need the library at that path in place of what that library needs itself:
 * of libibverbs or, if the object is linked with `librdmacm' alone or is libibverbs itself, of
 * the C library.  The path comes before librdmacm and must stay where it is.
 */
void audit_need(struct link_map *map, const char *path);

/* Of libibverbs or librdmacm, any release. */
bool audit_is_rdma(const char *soname);
bool audit_is_verbs(const char *soname);

#endif
