/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * promises.c - a program for promises.sh: prints what virtual time promises to be the same in each
 * run (docs/time.md).
 *
 *	promises	the names of what it prints
 *	promises NAME	one of them
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "member.h"

#define NUM_THREADS 8

static void print_bytes(const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		printf("%02x", ((const unsigned char *)bytes)[i]);
	putchar('\n');
}

static void dates(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI };
	struct timespec now;

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		CHECK(!clock_gettime(clocks[i], &now));
		printf("%lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
	}
	CHECK(!usleep(1500));
	printf("%lld\n", (long long)time(NULL));
}

static void usage(void)
{
	struct rusage usage;
	struct timespec now;
	struct tms tms;

	for (volatile int i = 0; i < 1000000; i++)
		;
	CHECK(!usleep(20000));
	CHECK(!getrusage(RUSAGE_SELF, &usage));
	CHECK(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
	CHECK(times(&tms) != (clock_t)-1);
	printf("%ld.%06ld %lld.%09ld %ld\n", (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec,
	       (long long)now.tv_sec, now.tv_nsec, (long)tms.tms_utime);
}

static void random_numbers(void)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	char name[] = "/tmp/promises.XXXXXX";
	unsigned char bytes[16];

	CHECK(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
	print_bytes(bytes, sizeof(bytes));
	CHECK(fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes) && !close(fd));
	print_bytes(bytes, sizeof(bytes));
	print_bytes((const void *)getauxval(AT_RANDOM), 16);
	fd = mkstemp(name);
	CHECK(fd >= 0 && !close(fd) && !unlink(name));
	puts(name);
}

static void ids(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		printf("child %d of %d\n", (int)getpid(), (int)getppid());
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	printf("%d %d %d, group %d\n", (int)pid, (int)getpid(), (int)gettid(), (int)getpgid(0));
}

static void addresses(void)
{
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *heap = malloc(100), *large = malloc(1000000);
	int local;

	printf("%p %p %p %p %p %p\n", (void *)&local, heap, large, map, (void *)stdout, (void *)puts);
	free(heap);
	free(large);
	munmap(map, 4096);
}

static void objects(void)
{
	int memory = shmget(IPC_PRIVATE, 4096, 0600), semaphores = semget(IPC_PRIVATE, 1, 0600);

	printf("%d %d\n", memory, semaphores);
	CHECK(!shmctl(memory, IPC_RMID, NULL) && !semctl(semaphores, 0, IPC_RMID));
}

static unsigned int port_of(int fd, struct sockaddr_in *ret)
{
	socklen_t len = sizeof(*ret);

	CHECK(!getsockname(fd, (struct sockaddr *)ret, &len));
	return ntohs(ret->sin_port);
}

static void ports(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct sockaddr_in at = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int datagram = socket(AF_INET, SOCK_DGRAM, 0), local = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t len = sizeof(name);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 1));
	printf("%u", port_of(listener, &at));
	CHECK(!connect(client, (struct sockaddr *)&at, sizeof(at)));
	printf(" %u", port_of(client, &at));
	CHECK(!connect(datagram, (struct sockaddr *)&at, sizeof(at)));
	printf(" %u\n", port_of(datagram, &at));
	CHECK(!bind(local, (struct sockaddr *)&name, sizeof(sa_family_t)));
	CHECK(!getsockname(local, (struct sockaddr *)&name, &len));
	print_bytes(name.sun_path, len - sizeof(sa_family_t));
	close(listener);
	close(client);
	close(datagram);
	close(local);
}

static void *say(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&lock);
		printf("%d ", (int)(intptr_t)arg);
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all[NUM_THREADS];

	for (intptr_t i = 0; i < NUM_THREADS; i++)
		CHECK(!pthread_create(&all[i], NULL, say, (void *)i));
	for (int i = 0; i < NUM_THREADS; i++)
		CHECK(!pthread_join(all[i], NULL));
	putchar('\n');
}

/* In the order in which they end; all write to one pipe. */
static void children(void)
{
	int ends[2], status, which;
	pid_t pids[5], pid;
	char byte;

	CHECK(!pipe(ends));
	for (int i = 0; i < 5; i++) {
		pid = fork();
		CHECK(pid >= 0);
		pids[i] = pid;
		if (pid)
			continue;
		for (byte = 'a' + (char)i; byte < 'z'; byte = (char)(byte + 5))
			CHECK(write(ends[1], &byte, 1) == 1 && !sched_yield());
		_exit(i);
	}
	close(ends[1]);
	while ((pid = wait(&status)) > 0) {
		for (which = 0; which < 5 && pids[which] != pid;)
			which++;
		printf("%d: %d, ", which, WEXITSTATUS(status));
	}
	while (read(ends[0], &byte, 1) == 1)
		putchar(byte);
	putchar('\n');
	close(ends[0]);
}

static volatile sig_atomic_t rings;

static void ring(int number)
{
	(void)number;
	rings++;
}

/* How far it counts, a look at the clock each, until three signals have come. */
static void signals(void)
{
	const struct itimerval often = { { 0, 7000 }, { 0, 7000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct timespec now;
	long looks = 0;

	CHECK(signal(SIGALRM, ring) != SIG_ERR && !setitimer(ITIMER_REAL, &often, NULL));
	for (; rings < 3; looks++)
		CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	printf("%ld looks\n", looks);
}

/* Each read takes time. */
static void counter(void)
{
	const unsigned long long begin = __builtin_ia32_rdtsc();

	for (int i = 0; i < 200; i++)
		printf("%llu\n", __builtin_ia32_rdtsc() - begin);
}

static volatile int written;

static void *write_memory(void *arg)
{
	for (int i = 1; i <= 5; i++) {
		usleep((useconds_t)i * 100);
		written = i;
	}
	return arg;
}

/* Loops without any call. */
static void memory(void)
{
	struct timespec now;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, write_memory, NULL));
	for (int i = 1; i <= 5; i++) {
		while (written < i)
			;
		CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
		printf("%d at %lld.%09ld\n", i, (long long)now.tv_sec, now.tv_nsec);
	}
	CHECK(!pthread_join(thread, NULL));
}

static void host(void)
{
	char name[65];

	CHECK(!gethostname(name, sizeof(name)));
	puts(name);
}

static const struct {
	const char *name;
	void (*print)(void);
} promises[] = {
	{ "dates", dates },
	{ "usage", usage },
	{ "random", random_numbers },
	{ "ids", ids },
	{ "addresses", addresses },
	{ "objects", objects },
	{ "ports", ports },
	{ "threads", threads },
	{ "children", children },
	{ "signals", signals },
	{ "counter", counter },
	{ "memory", memory },
	{ "host", host },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++)
		if (argc < 2)
			puts(promises[i].name);
		else if (!strcmp(argv[1], promises[i].name))
			promises[i].print();
	return 0;
}
