/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * info.c - polycm info: the providers, and one of them in detail.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "polycm/polycm.h"

#define MAX_TRANSPORTS 16

/* A provider, copied: in a walk's callback the library must not be called again. */
struct provider {
	struct provider *next;
	const char *name, *path, *problem, *version, *description, *transport, *carries, *place;
	bool failed;			/* cannot be used, or does not start */
};

struct providers {
	struct provider *first;		/* in the order of their names */
	bool any_device;
	bool any_failed;		/* among the selected */
};

void info_usage(FILE *to)
{
	fputs("usage: polycm info [--config] [PROVIDER]\n"
	      "\n"
	      "Shows the installed providers, the rules of their transports and the usable\n"
	      "devices, as a program in this environment sees them.\n"
	      "\n"
	      "  PROVIDER   shows only this provider, with its rules, devices and settings\n"
	      "  --config   shows every setting, or those of PROVIDER: the value, where it\n"
	      "             comes from, and its meaning\n"
	      "\n"
	      "With a simulated device: polycm run --provider sim polycm info\n", to);
}

static const char *plural(unsigned int n)
{
	return n == 1 ? "" : "s";
}

/* Does it carry connections, and if not why? */
static const char *carries(const struct polycm_provider_info *info)
{
	if (info->problem)
		return tool_printf("cannot be used: %s", info->problem);
	if (info->selected && info->error)
		return tool_printf("cannot start: %s", strerror(-info->error));
	if (info->layer)
		return info->selected ? "around the others" : "as a layer";
	if (info->selected && !info->num_devices)
		return "no devices";
	if (info->selected)
		return tool_printf("yes, %u device%s", info->num_devices,
				   plural(info->num_devices));
	if (info->on_request)
		return "on request";
	return info->transport ? "rules only" : "no";
}

static const char *copy(const char *text)
{
	return text ? tool_strdup(text) : "-";
}

static int keep_provider(void *arg, const struct polycm_provider_info *info)
{
	struct providers *providers = arg;
	struct provider *provider = calloc(1, sizeof(*provider)), **at;

	if (!provider)
		return -1;
	provider->name = copy(info->name);
	provider->path = copy(info->path);
	provider->problem = info->problem ? tool_strdup(info->problem) : NULL;
	provider->version = copy(info->version);
	provider->description = copy(info->description);
	provider->transport = copy(info->transport);
	provider->carries = carries(info);
	provider->place = info->place ? tool_strdup(info->place) : NULL;
	provider->failed = info->problem || info->error;
	providers->any_failed |= info->selected && info->error;
	providers->any_device |= info->num_devices > 0;
	for (at = &providers->first; *at && strcmp((*at)->name, provider->name) < 0;)
		at = &(*at)->next;
	provider->next = *at;
	*at = provider;
	return 0;
}

static bool has_rules(const struct provider *provider)
{
	return !provider->problem && strcmp(provider->transport, "-") != 0;
}

static void show_providers(const struct providers *providers)
{
	const struct provider *provider;
	struct table table = { 0 };

	puts("Providers");
	TABLE_ROW(&table, "NAME", "VERSION", "RULES", "CARRIES", "FILE");
	for (provider = providers->first; provider; provider = provider->next)
		TABLE_ROW(&table, provider->name, provider->version, provider->transport,
			  provider->carries, provider->path);
	if (!providers->first)
		TABLE_ROW(&table, "none");
	table_print(&table, 2);
}

/* Processes that name another folder here cannot connect with those in this environment. */
static void show_places(const struct providers *providers)
{
	const struct provider *provider;

	for (provider = providers->first; provider; provider = provider->next)
		if (provider->place)
			printf("\nShared network of %s\n  %s\n", provider->name, provider->place);
}

static int stop(void *arg, const struct polycm_device_view *view)
{
	(void)arg;
	(void)view;
	return 1;
}

/* Devices that are listed are of use only to who may talk to their connection manager. */
static int try_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel) {
		tool_error("info: nothing can connect over these devices: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	rdma_destroy_event_channel(channel);
	return 0;
}

static int show_all(const struct providers *providers)
{
	const char *transports[MAX_TRANSPORTS];
	const struct provider *provider;
	size_t num = 0, i;
	int status;

	printf("polycm %s, %s\n\n", polycm_version(), place_library());
	show_providers(providers);

	for (provider = providers->first; provider && num < MAX_TRANSPORTS;
	     provider = provider->next) {
		if (!has_rules(provider))
			continue;
		for (i = 0; i < num && strcmp(transports[i], provider->transport); i++)
			;
		if (i == num)
			transports[num++] = provider->transport;
	}
	if (num) {
		puts("\nTransports");
		status = info_rules(transports, num);
		if (status)
			return status;
	}

	puts("\nDevices");
	/* Fails where POLYCM_PROVIDER names what is not there. */
	status = providers->any_device || polycm_devices_walk(stop, NULL) < 0 ? info_devices(NULL) : 0;
	if (!providers->any_device && !status)
		puts("  none; for a simulated one: polycm run --provider sim polycm info");
	show_places(providers);
	fflush(stdout);
	if (providers->any_device && !status)
		status = try_channel();
	return status || providers->any_failed ? EXIT_FAILURE : 0;
}

static const struct provider *find(const struct providers *providers, const char *name)
{
	const struct provider *provider;

	for (provider = providers->first; provider; provider = provider->next)
		if (!strcmp(provider->name, name))
			return provider;
	tool_error("info: there is no provider '%s'; 'polycm info' lists them", name);
	return NULL;
}

static int show_one(const struct provider *provider)
{
	struct table table = { 0 };
	int status = 0;

	puts(provider->name);
	if (!provider->problem) {
		TABLE_ROW(&table, "description", provider->description);
		TABLE_ROW(&table, "version", provider->version);
	}
	TABLE_ROW(&table, "file", provider->path);
	TABLE_ROW(&table, "carries", provider->carries);
	if (provider->place)
		TABLE_ROW(&table, "processes meet in", provider->place);
	table_print(&table, 2);
	if (provider->problem)
		return EXIT_FAILURE;

	if (has_rules(provider)) {
		printf("\nRules of transport %s\n", provider->transport);
		status = info_rules(&provider->transport, 1);
	}
	puts("\nDevices");
	if (!status)
		status = info_devices(provider->name);
	puts("\nSettings");
	if (!status)
		status = info_settings(provider->name);
	return provider->failed ? EXIT_FAILURE : status;
}

int info_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", no_argument, NULL, 0 },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct providers providers = { 0 };
	const struct provider *one = NULL;
	const char *config = NULL;
	int status = tool_options(argc, argv, ":h", options, info_usage, &config);

	if (status >= 0)
		return status;
	if (argc - optind > 1) {
		tool_error("info: too many arguments; 'polycm help info' tells more");
		return STATUS_USAGE;
	}
	/* This also loads them all, so that their settings are known. */
	if (polycm_providers_walk(true, keep_provider, &providers) < 0) {
		tool_error("info: cannot look for providers: %m");
		return EXIT_FAILURE;
	}
	if (optind < argc) {
		one = find(&providers, argv[optind]);
		if (!one)
			return EXIT_FAILURE;
	}
	if (config)
		return info_settings(one ? one->name : NULL);
	return one ? show_one(one) : show_all(&providers);
}
