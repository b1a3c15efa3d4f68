/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registry_case.h - a case of the registry's tests: folders with plugins and
 * an environment, for a process of its own, since the registry loads once.
 */
#ifndef TESTS_UNIT_REGISTRY_CASE_H
#define TESTS_UNIT_REGISTRY_CASE_H

#include "tests/cmocka_all.h"

#include <stdbool.h>
#include <sys/types.h>

/* Which file a plugin of a case is a copy of. */
enum source {
	BY_NAME,
	OTHER_VERSION,
	UNDEFINED,
	NOTHING,
	BORROW,
	TEXT,
	TRUNCATED,
	FOLDER,
	US,
	DANGLING,
};

struct plugin {
	const char *file;	/* below the case's folder, which has folders a and b */
	enum source source;
};

struct testcase {
	struct plugin plugins[4];
	const char *provider;		/* POLYCM_PROVIDER, or NULL */
	const char *log;		/* POLYCM_LOG, or NULL: warn */
	int result;
	const char *selected;
	const char *devices;
	size_t lines;			/* of log */
	const char *said[3];		/* parts of it */
	const char *variable;		/* one more in the environment */
	bool privileged;
};

/* Below $TMPDIR, with folders a and b; empty if there are no plugins to copy. */
extern char case_folder[256];
/* What TRUNCATED leaves; negative: so many bytes less than there are. */
extern off_t case_truncated_size;

/* Group set-up and tear-down. */
int case_make_folder(void **state);
int case_remove_folder(void **state);

void run_cases(const struct testcase *tests, size_t num);

/*
 * Run fn in a child, POLYCM_PROVIDER=acme.  It returns 0, or the line that
 * failed, for which CHECK() is good.
 */
void run_in_child(int (*fn)(void), const struct plugin *plugins, size_t num);
#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

#define PLUGIN(folder, name, source) { folder "/provider-" name ".so", source }
#define ACME PLUGIN("a", "acme", BY_NAME)
#define BETA PLUGIN("b", "beta", BY_NAME)
#define WRAP PLUGIN("a", "wrap", BY_NAME)
#define WRAP_TWO PLUGIN("a", "wrap-two", BY_NAME)
#define LAZY PLUGIN("a", "lazy", BY_NAME)

#endif
