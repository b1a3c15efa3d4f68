/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder of the shared fabric: names, owners and modes, what earlier
 * processes left behind, and files that are none of ours.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/soft/fabric/fabric.h"
#include "providers/soft/host/host.h"
#include "providers/soft/shm/folder.h"
#include "providers/soft/shm/segment.h"
#include "folder_world.h"
#include "shm_child.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define FOLDER "polycm/default-roce"
#define SEGMENT FOLDER "/segment"

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(sim_fake_path("%s", path), &st);
}

static void remove_file(const char *path)
{
	assert_int_equal(unlink(sim_fake_path("%s", path)), 0);
}

static void remove_folder(const char *path)
{
	assert_int_equal(rmdir(sim_fake_path("%s", path)), 0);
}

static void join_and_leave(void)
{
	assert_int_equal(folder_join(), 0);
	folder_leave();
}

static int lowest_free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* Join with room for so many more descriptors. */
static int open_fabric_with(unsigned int descriptors)
{
	struct rlimit before, low;
	int r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = (rlim_t)lowest_free_descriptor() + descriptors;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	r = folder_join();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return r;
}

/* The name of this user's folder in another. */
static const char *base(const char *parent)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/polycm-%u", parent, (unsigned int)geteuid());
	return path;
}

/* ------------------------------------------------------------------------
 * Names and folders.
 */

static const struct {
	const char *name;
	bool valid;
} names[] = {
	{ "default", true },
	{ "a", true },
	{ "A-z_0.9", true },
	{ "-", true },
	{ "a..b", true },
	{ "", false },
	{ ".", false },
	{ "..", false },
	{ ".hidden", false },
	{ "a/b", false },
	{ "/etc", false },
	{ "../up", false },
	{ "a b", false },
	{ "a\n", false },
	{ "a\\b", false },
	{ "\xc3\xa4", false },
	{ "%s", false },
};

static void names_cannot_lead_elsewhere(void **state)
{
	char name[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		print_message("case %zu: %s\n", i, names[i].name);
		assert_int_equal(sim_folder_name_valid(names[i].name), names[i].valid);
	}
	memset(name, 'a', sizeof(name));
	name[154] = '\0';
	assert_false(sim_folder_name_valid(name));
	name[153] = '\0';
	assert_true(sim_folder_name_valid(name));
}

static void a_bad_name_is_told(void **state)
{
	char name[66] = "";

	(void)state;
	sim_fake_set("POLYCM_SIM_FABRIC", "../../etc");
	folder_refused(-EINVAL, "POLYCM_SIM_FABRIC=../../etc: no name for a fabric");
	memset(name, 'a', 65);
	sim_fake_set("POLYCM_SIM_FABRIC", name);
	folder_refused(-EINVAL, "no name for a fabric: up to 64 letters");
	assert_false(exists("polycm"));
	name[64] = '\0';
	sim_fake_set("POLYCM_SIM_FABRIC", name);
	assert_int_equal(folder_join(), 0);
}

static void fabrics_and_transports_have_folders_of_their_own(void **state)
{
	struct stat st;

	(void)state;
	sim_fake_set("POLYCM_SIM_FABRIC", "blue");
	sim_fake_set("POLYCM_SIM_TRANSPORT", "iwarp");
	assert_int_equal(folder_join(), 0);
	assert_true(sim_fabric_is_shared());
	assert_int_equal(sim_self_slot(), 0);
	assert_int_equal(lstat(sim_fake_path("polycm/blue-iwarp"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(lstat(sim_fake_path("polycm/blue-iwarp/segment"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	folder_leave();
	assert_false(exists("polycm/blue-iwarp"));
	assert_false(exists("polycm/blue-iwarp.lock"));
	assert_false(sim_fabric_is_shared());
	assert_int_equal(folder_join(), 0);
	assert_true(exists("polycm/blue-iwarp/segment"));
}

static void a_folder_that_others_can_use_is_refused(void **state)
{
	static const mode_t modes[] = { 0755, 0770, 0701, 0777 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		folder_make("polycm", modes[i]);
		folder_refused(-EPERM, "is not a folder that belongs to user");
		remove_folder("polycm");

		folder_make("polycm", 0700);
		folder_make(FOLDER, modes[i]);
		folder_refused(-EPERM, "default-roce is not a folder that belongs to user");
		remove_folder(FOLDER);
		remove_file("polycm/default-roce.lock");
		remove_folder("polycm");
	}
}

static void a_folder_of_somebody_else_is_refused(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	folder_make("polycm", 0700);
	assert_int_equal(chown(sim_fake_path("polycm"), 1, 1), 0);
	folder_refused(-EPERM, "is not a folder that belongs to user 0 alone");
	remove_folder("polycm");
}

/* Other processes may not meet with that error, and would be elsewhere. */
static void a_call_that_fails_leads_to_no_other_folder(void **state)
{
	char runtime[300];

	(void)state;
	strcpy(runtime, sim_fake_path("."));
	folder_write("file", 0, "x", 1);
	assert_int_equal(symlink("loop", sim_fake_path("loop")), 0);
	setenv("XDG_RUNTIME_DIR", sim_fake_path("file"), 1);
	folder_refused(-ENOTDIR, "file/polycm: Not a directory");
	setenv("XDG_RUNTIME_DIR", sim_fake_path("loop"), 1);
	folder_refused(-ELOOP, "loop/polycm: ");
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	remove_file("file");
	remove_file("loop");
}

static void a_place_that_is_passed_over_is_told(void **state)
{
	static const struct {
		const char *dir, *why;
		mode_t mode;
	} cases[] = {
		{ "nowhere", "nowhere/polycm is not used: No such file or directory", 0 },
		{ "open", "open/polycm is not used: other users may use it", 0755 },
	};
	char runtime[300], shared[300];

	(void)state;
	strcpy(shared, sim_fake_path("shared"));
	strcpy(runtime, sim_fake_path("."));
	sim_folder_parents[0] = sim_folder_parents[1] = shared;
	folder_make("shared", 0700);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (cases[i].mode)
			folder_make(cases[i].dir, cases[i].mode);
		setenv("XDG_RUNTIME_DIR", sim_fake_path("%s", cases[i].dir), 1);
		assert_int_equal(folder_join(), 0);
		assert_non_null(strstr(sim_fake_log(POLYCM_LOG_WARN), cases[i].why));
		assert_non_null(strstr(sim_fake_log(POLYCM_LOG_WARN), "processes of this user use "));
		assert_true(exists(base("shared")));
		folder_leave();
		setenv("XDG_RUNTIME_DIR", runtime, 1);
		remove_folder(base("shared"));
		if (cases[i].mode)
			remove_folder(cases[i].dir);
	}
	remove_folder("shared");
}

/* Another user cannot keep this one from his fabrics, nor make him change over while he is on one. */
static void a_name_that_another_user_took_is_passed_over(void **state)
{
	static char shared[2][300];

	(void)state;
	if (geteuid())
		skip();
	for (unsigned int i = 0; i < 2; i++) {
		strcpy(shared[i], sim_fake_path("shared%u", i));
		sim_folder_parents[i] = shared[i];
		folder_make(i ? "shared1" : "shared0", 0777);
	}
	unsetenv("XDG_RUNTIME_DIR");
	folder_make(base("shared0"), 0755);
	assert_int_equal(chown(sim_fake_path("%s", base("shared0")), 1, 1), 0);
	assert_int_equal(folder_join(), 0);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_WARN),
			       "is not used: another user took that name"));
	assert_true(exists(base("shared1")));
	folder_leave();
	remove_folder(base("shared0"));
	assert_int_equal(folder_join(), 0);
	assert_false(exists(base("shared0")));
	folder_leave();
	remove_folder(base("shared1"));

	/* Both taken: what can be done about it, which is not to remove them. */
	for (unsigned int i = 0; i < 2; i++) {
		folder_make(base(i ? "shared1" : "shared0"), 0755);
		assert_int_equal(chown(sim_fake_path("%s", base(i ? "shared1" : "shared0")), 1, 1), 0);
	}
	folder_refused(-EACCES, "another user took that name: set XDG_RUNTIME_DIR to a folder");
	for (unsigned int i = 0; i < 2; i++) {
		remove_folder(base(i ? "shared1" : "shared0"));
		remove_folder(i ? "shared1" : "shared0");
	}
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return written;
}

/* 0: root there has the folder of the user who made the namespace; 77: there are none. */
static int join_as_root_of_a_namespace(const char *outside)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)geteuid());
	if (unshare(CLONE_NEWUSER) || !write_file("/proc/self/uid_map", map) || geteuid())
		return 77;
	if (folder_join() || !exists(outside))
		return 1;
	folder_leave();
	return 0;
}

static bool become(uid_t user)
{
	return !chmod(sim_fake_path("."), 0711) && (geteuid() == user || !setresuid(user, user, user)) &&
	       !prctl(PR_SET_DUMPABLE, 1);
}

static void users_who_are_root_of_their_namespaces_differ(void **state)
{
	char shared[300], outside[300];
	const uid_t user = geteuid() ? geteuid() : 65534;
	int status;
	pid_t child;

	(void)state;
	strcpy(shared, sim_fake_path("shared"));
	sim_folder_parents[0] = sim_folder_parents[1] = shared;
	folder_make("shared", 0777);
	snprintf(outside, sizeof(outside), "shared/polycm-%u", (unsigned int)user);
	unsetenv("XDG_RUNTIME_DIR");
	child = fork();
	if (!child)
		_exit(become(user) ? join_as_root_of_a_namespace(outside) : 77);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	setenv("XDG_RUNTIME_DIR", sim_fake_path("."), 1);
	assert_int_equal(chmod(sim_fake_path("."), 0700), 0);
	if (!WEXITSTATUS(status))
		remove_folder(outside);
	remove_folder("shared");
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void links_and_files_in_place_of_folders_are_refused(void **state)
{
	(void)state;
	folder_make("elsewhere", 0700);
	assert_int_equal(symlink("elsewhere", sim_fake_path("polycm")), 0);
	folder_refused(-EPERM, "is not a folder");
	remove_file("polycm");
	folder_write("polycm", 0, "x", 1);
	folder_refused(-EPERM, "is not a folder");
	remove_file("polycm");
	remove_folder("elsewhere");
}

static void a_link_in_place_of_the_segment_is_not_followed(void **state)
{
	struct stat st;

	(void)state;
	folder_make("polycm", 0700);
	folder_make(FOLDER, 0700);
	folder_write("victim", 0, "precious", 8);
	assert_int_equal(symlink("../../victim", sim_fake_path(SEGMENT)), 0);
	folder_refused(-ELOOP, "segment");
	assert_int_equal(lstat(sim_fake_path("victim"), &st), 0);
	assert_int_equal(st.st_size, 8);
	remove_file("victim");
	remove_file(SEGMENT);
	remove_folder(FOLDER);
	remove_file("polycm/default-roce.lock");
}

/* ------------------------------------------------------------------------
 * What is in the folder already.
 */

static void garbage_is_told_and_left_alone(void **state)
{
	static const struct {
		size_t len;
		uint8_t byte;
	} garbage[] = {
		{ 1, 'x' }, { 7, 0xff }, { 24, 'x' }, { 100, 0x01 }, { 70000, 'x' },
	};
	static uint8_t bytes[70000];
	struct stat st;

	(void)state;
	folder_make("polycm", 0700);
	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		folder_make(FOLDER, 0700);
		memset(bytes, garbage[i].byte, sizeof(bytes));
		folder_write(SEGMENT, 0, bytes, garbage[i].len);
		folder_refused(-EPROTO, "default-roce/segment: this is no segment of polycm: remove it");
		assert_int_equal(lstat(sim_fake_path(SEGMENT), &st), 0);
		assert_int_equal(st.st_size, garbage[i].len);
		remove_file(SEGMENT);
		remove_folder(FOLDER);
	}
	assert_int_equal(folder_join(), 0);
}

/* The process was never on it, so its children have no place there. */
static void a_fabric_that_was_refused_is_not_joined_after_fork(void **state)
{
	(void)state;
	folder_make("polycm", 0700);
	folder_make(FOLDER, 0700);
	folder_write(SEGMENT, 0, "x", 1);
	folder_refused(-EPROTO, "default-roce/segment: this is no segment of polycm: remove it");
	remove_file(SEGMENT);
	remove_folder(FOLDER);
	sim_lock();
	sim_engine_hooks.after_fork();
	sim_unlock();
	assert_false(sim_fabric_is_shared());
	assert_int_equal(folder_join(), 0);
}

static void a_segment_that_was_never_finished_is_made_anew(void **state)
{
	static const size_t lengths[] = { 0, 8, 4096 };
	static uint8_t zero[4096];

	(void)state;
	folder_make("polycm", 0700);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		folder_make(FOLDER, 0700);
		folder_write(SEGMENT, 0, zero, lengths[i]);
		assert_int_equal(folder_join(), 0);
		assert_int_equal(sim_self_slot(), 0);
		folder_leave();
		assert_false(exists(FOLDER));
	}
}

/* In a run of several programs, whose launcher removes it. */
static void a_kept_fabric_stays_while_nobody_is_on_it(void **state)
{
	(void)state;
	folder_make("polycm", 0700);
	folder_write("polycm/" SIM_FOLDER_KEPT, 0, "", 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(folder_join(), 0);
		assert_int_equal(sim_self_slot(), i);	/* of a new segment: 0 */
		folder_leave();
		assert_true(exists(SEGMENT));
	}
	remove_file("polycm/" SIM_FOLDER_KEPT);
	join_and_leave();
	assert_false(exists(FOLDER));
}

static void what_the_dead_left_is_cleared_away(void **state)
{
	struct shm_child child;

	(void)state;
	shm_child_start(&child, "hold");
	assert_int_equal(child.slot, 0);
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	folder_write(FOLDER "/ring-5.6-7.8", 0, "x", 1);
	folder_write(FOLDER "/ring-0.1-1.1", 0, "x", 1);
	folder_write(FOLDER "/ring-0.1-2.1.new", 0, "x", 1);
	folder_write(FOLDER "/notes", 0, "x", 1);
	assert_int_equal(folder_join(), 0);
	assert_int_equal(sim_self_slot(), 0);
	assert_false(exists(FOLDER "/ring-5.6-7.8"));
	assert_false(exists(FOLDER "/ring-0.1-1.1"));
	assert_false(exists(FOLDER "/ring-0.1-2.1.new"));
	assert_true(exists(FOLDER "/notes"));
	assert_int_equal(sim_slot_of_qpn(child.qpn), SIM_MAX_SLOTS);
	folder_leave();
	assert_false(exists(FOLDER));
}

static void start_on(const char *fabric, struct shm_child *child)
{
	setenv("SHM_CHILD_FABRIC", fabric, 1);
	shm_child_start(child, "hold");
	unsetenv("SHM_CHILD_FABRIC");
}

/* A process that makes a fabric removes others that have no processes. */
static void folders_of_the_dead_are_swept(void **state)
{
	static const char *const fabrics[] = { "red", "green", "blue" };
	struct shm_child children[3];

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		start_on(fabrics[i], &children[i]);
	assert_true(WIFSIGNALED(shm_child_kill(&children[0])));
	assert_true(WIFSIGNALED(shm_child_kill(&children[2])));
	folder_write("polycm/not-a-folder.lock", 0, "", 0);
	folder_write("polycm/notes", 0, "x", 1);
	assert_int_equal(folder_join(), 0);
	assert_false(exists("polycm/red-roce"));
	assert_false(exists("polycm/red-roce.lock"));
	assert_true(exists("polycm/green-roce/segment"));
	assert_true(exists("polycm/green-roce.lock"));
	assert_false(exists("polycm/blue-roce"));
	assert_true(exists("polycm/not-a-folder.lock"));
	assert_true(exists("polycm/notes"));
	assert_int_equal(shm_child_end(&children[1]), 0);
	assert_false(exists("polycm/green-roce"));
	remove_file("polycm/not-a-folder.lock");
	remove_file("polycm/notes");
}

/* What cannot be looked into may be in use. */
static void a_process_without_descriptors_removes_no_living_fabric(void **state)
{
	struct shm_child living, late;
	int r = -1;

	(void)state;
	setenv("SHM_CHILD_FABRIC", "green", 1);
	shm_child_start(&living, "hold");
	for (unsigned int n = 0; n < 16; n++) {
		print_message("room for %u descriptors\n", n);
		r = open_fabric_with(n);
		folder_leave();
		assert_true(r == 0 || r == -EMFILE);
		assert_true(exists("polycm/green-roce/segment"));
		assert_true(exists("polycm/green-roce.lock"));
	}
	assert_int_equal(r, 0);
	shm_child_start(&late, "echo");
	assert_int_equal(late.slot, 1);
	unsetenv("SHM_CHILD_FABRIC");
	assert_int_equal(shm_child_end(&late), 0);
	assert_int_equal(shm_child_end(&living), 0);
	assert_false(exists("polycm/green-roce.lock"));
}

/* That the segment cannot be read says nothing about who uses the fabric. */
static void what_a_living_process_holds_is_not_removed(void **state)
{
	struct shm_child living;

	(void)state;
	start_on("green", &living);
	remove_file("polycm/green-roce/segment");
	assert_int_equal(symlink("nowhere", sim_fake_path("polycm/green-roce/segment")), 0);
	join_and_leave();
	assert_true(exists("polycm/green-roce/segment"));
	remove_file("polycm/green-roce/segment");
	join_and_leave();
	assert_true(exists("polycm/green-roce.lock"));
	assert_int_equal(shm_child_end(&living), 0);
	assert_false(exists("polycm/green-roce.lock"));
}

/* Not even where nobody has a lock: only what is not there is not in use. */
static void what_cannot_be_looked_into_or_emptied_stays(void **state)
{
	struct shm_child dead;

	(void)state;
	start_on("green", &dead);
	assert_true(WIFSIGNALED(shm_child_kill(&dead)));
	remove_file("polycm/green-roce/segment");
	assert_int_equal(symlink("nowhere", sim_fake_path("polycm/green-roce/segment")), 0);
	join_and_leave();
	assert_true(exists("polycm/green-roce.lock"));
	remove_file("polycm/green-roce/segment");

	/* Without its lock, two processes could make the fabric anew at a time. */
	folder_make("polycm/green-roce/full", 0700);
	join_and_leave();
	assert_true(exists("polycm/green-roce.lock"));
	remove_folder("polycm/green-roce/full");
	assert_int_equal(folder_join(), 0);
	assert_false(exists("polycm/green-roce.lock"));
}

/* Bytes 8 to 11 are the version, 16 to 23 the size. */
static void another_version_is_told_while_it_is_in_use(void **state)
{
	static const struct {
		off_t at;
		const char *bytes;
		size_t len;
	} changes[] = {
		{ 8, "\x63", 1 }, { 16, "\x01", 1 },
	};
	struct shm_child child;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		shm_child_start(&child, "hold");
		folder_write(SEGMENT, changes[i].at, changes[i].bytes, changes[i].len);
		folder_refused(-EPROTO, "processes of another version of polycm use this fabric");
		/* Once they are gone their file is not in the way. */
		assert_true(WIFSIGNALED(shm_child_kill(&child)));
		assert_int_equal(folder_join(), 0);
		folder_leave();
		assert_false(exists(FOLDER));
	}
}

static void a_segment_cut_short_is_told_while_it_is_in_use(void **state)
{
	struct shm_child child;

	(void)state;
	shm_child_start(&child, "hold");
	assert_int_equal(truncate(sim_fake_path(SEGMENT), 4096), 0);
	folder_refused(-EPROTO, "processes of another version of polycm use this fabric");
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	assert_int_equal(folder_join(), 0);
}

static void a_second_process_gets_the_next_slot(void **state)
{
	struct shm_child children[3];

	(void)state;
	assert_int_equal(folder_join(), 0);
	for (unsigned int i = 0; i < 3; i++) {
		shm_child_start(&children[i], "echo");
		assert_int_equal(children[i].slot, i + 1);
	}
	folder_leave();
	assert_true(exists(SEGMENT));		/* the others are still there */
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(shm_child_end(&children[i]), 0);
	assert_false(exists(FOLDER));
}

int main(int argc, char **argv)
{
#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, folder_start, folder_stop)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_cannot_lead_elsewhere),
		FOLDER_TEST(a_bad_name_is_told),
		FOLDER_TEST(fabrics_and_transports_have_folders_of_their_own),
		FOLDER_TEST(a_folder_that_others_can_use_is_refused),
		FOLDER_TEST(a_folder_of_somebody_else_is_refused),
		FOLDER_TEST(a_call_that_fails_leads_to_no_other_folder),
		FOLDER_TEST(a_place_that_is_passed_over_is_told),
		FOLDER_TEST(a_name_that_another_user_took_is_passed_over),
		FOLDER_TEST(users_who_are_root_of_their_namespaces_differ),
		FOLDER_TEST(links_and_files_in_place_of_folders_are_refused),
		FOLDER_TEST(a_link_in_place_of_the_segment_is_not_followed),
		FOLDER_TEST(garbage_is_told_and_left_alone),
		FOLDER_TEST(a_fabric_that_was_refused_is_not_joined_after_fork),
		FOLDER_TEST(a_segment_that_was_never_finished_is_made_anew),
		FOLDER_TEST(a_kept_fabric_stays_while_nobody_is_on_it),
		FOLDER_TEST(what_the_dead_left_is_cleared_away),
		FOLDER_TEST(folders_of_the_dead_are_swept),
		FOLDER_TEST(a_process_without_descriptors_removes_no_living_fabric),
		FOLDER_TEST(what_a_living_process_holds_is_not_removed),
		FOLDER_TEST(what_cannot_be_looked_into_or_emptied_stays),
		FOLDER_TEST(another_version_is_told_while_it_is_in_use),
		FOLDER_TEST(a_segment_cut_short_is_told_while_it_is_in_use),
		FOLDER_TEST(a_second_process_gets_the_next_slot),
	};
	int child = shm_child_main(argc, argv);

	if (child >= 0)
		return child;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
