/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/check.c - checks and copies what a plugin hands over, before anything else
 * uses it.
 *
 * A plugin may be built with other versions of <polycm/provider.h>, or simply
 * be wrong.  Of each table the smaller of both sizes is copied.  A table whose
 * size is not that of the version that the plugin says it was built for is
 * refused: the two sides would not mean the same members.
 */
#include "config.h"

#include "plugin_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/abi.h"
#include "kernel_client.h"
#include "op.h"
#include "transport.h"

#define MAX_OPTIONS 256u
#define MAX_AREA (1u << 20)	/* of an id or a channel */
#define MAX_ERRNO 4095

static const struct polycm_abi_struct provider_struct =
	POLYCM_ABI_STRUCT("its description", struct polycm_provider, extension);
static const struct polycm_abi_struct ops_struct =
	POLYCM_ABI_STRUCT("its table of operations", struct polycm_ops, free);
static const struct polycm_abi_struct layer_struct =
	POLYCM_ABI_STRUCT("its table of a layer's operations", struct polycm_layer_ops, end);
static const struct polycm_abi_struct option_struct =
	POLYCM_ABI_STRUCT("its table of settings", struct polycm_option, help);

int polycm_refuse(char *why, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, PROVIDER_WHY_SIZE, format, args);
	va_end(args);
	return err;
}

int polycm_misuse_positive(const struct polycm_module *module, const char *operation, int r)
{
	polycm_misuse(module, operation, "it returned %d: operations return 0 or a negative errno", r);
	return r <= MAX_ERRNO ? -r : -EINVAL;
}

static int check_size(const struct polycm_abi_struct *s, uint32_t size, uint32_t minor, char *why)
{
	return polycm_abi_check(s, size, minor, why, PROVIDER_WHY_SIZE);
}

static bool is_aligned(const void *pointer)
{
	return !((uintptr_t)pointer % _Alignof(void *));
}

/* ------------------------------------------------------------------------
 * Operations.
 */

typedef void (*slot_t)(void);

#define FIRST_SLOT offsetof(struct polycm_ops, init)
#define NUM_SLOTS ((sizeof(struct polycm_ops) - FIRST_SLOT) / sizeof(slot_t))

_Static_assert(FIRST_SLOT + NUM_SLOTS * sizeof(slot_t) == sizeof(struct polycm_ops),
	       "an operations table is its size and functions");

static const struct {
	const char *name;
	size_t offset;
} required_ops[] = {
#define REQUIRED(op) { #op, offsetof(struct polycm_ops, op) }
	REQUIRED(enumerate),
	REQUIRED(match),
	REQUIRED(open),
	REQUIRED(close),
	REQUIRED(stop),
	REQUIRED(free),
#undef REQUIRED
};

static bool is_empty(const struct polycm_ops *ops, size_t offset)
{
	slot_t slot;

	memcpy(&slot, (const char *)ops + offset, sizeof(slot));
	return !slot;
}

/*
 * Providers over the kernel share its ids: what makes, finds and ends an id is
 * the kernel client's; the rest is the provider's where it has it.
 */
static void complete_from_kernel(struct polycm_ops *ops)
{
	static const size_t theirs[] = {
#define THEIRS(op) offsetof(struct polycm_ops, op)
		THEIRS(init), THEIRS(resolve_route), THEIRS(connect), THEIRS(accept),
		THEIRS(reject), THEIRS(establish), THEIRS(disconnect), THEIRS(notify),
		THEIRS(set_option), THEIRS(init_qp_attr), THEIRS(join_multicast),
		THEIRS(leave_multicast), THEIRS(inspect_device),
#undef THEIRS
	};
	struct polycm_ops complete = polycm_kernel_ops;

	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		if (!is_empty(ops, theirs[i]))
			memcpy((char *)&complete + theirs[i], (const char *)ops + theirs[i],
			       sizeof(slot_t));
	*ops = complete;
}

/* Over the kernel, and around others, a provider may have none. */
static int copy_table_of_ops(struct polycm_ops *ops, const struct polycm_provider *desc, char *why)
{
	const struct polycm_ops *theirs = desc->ops;
	int r;

	memset(ops, 0, sizeof(*ops));
	if (!theirs && (desc->flags & POLYCM_PROVIDER_KERNEL || desc->layer))
		return 0;
	if (!theirs || !is_aligned(theirs))
		return INVALID(why, "it has no table of operations");
	r = check_size(&ops_struct, theirs->size, desc->abi_minor, why);
	if (!r)
		polycm_abi_copy(ops, sizeof(*ops), theirs);
	return r;
}

static int copy_ops(struct polycm_ops *ops, const struct polycm_provider *desc, char *why)
{
	int r = copy_table_of_ops(ops, desc, why);

	if (r)
		return r;
	if (desc->flags & POLYCM_PROVIDER_KERNEL)
		complete_from_kernel(ops);
	/* All other operations of a layer may be missing. */
	if (desc->layer) {
		if (!ops->init)
			ops->init = polycm_stub_ops.init;
		if (!ops->fini)
			ops->fini = polycm_stub_ops.fini;
		return 0;
	}
	for (size_t i = 0; i < sizeof(required_ops) / sizeof(required_ops[0]); i++)
		if (is_empty(ops, required_ops[i].offset))
			return INVALID(why, "its operation %s is missing", required_ops[i].name);

	for (size_t i = 0; i < NUM_SLOTS; i++) {
		size_t offset = FIRST_SLOT + i * sizeof(slot_t);

		if (is_empty(ops, offset))
			memcpy((char *)ops + offset, (const char *)&polycm_stub_ops + offset,
			       sizeof(slot_t));
	}
	return 0;
}

static int copy_layer(struct polycm_module *module, char *why)
{
	const struct polycm_layer_ops *theirs = module->desc.layer;
	int r;

	if (!theirs)
		return 0;
	if (!is_aligned(theirs))
		return INVALID(why, "its table of a layer's operations is not aligned");
	if (module->desc.flags & POLYCM_PROVIDER_KERNEL || module->desc.transport)
		return INVALID(why, "it is a layer and yet has %s", module->desc.transport ?
			      "transport rules" : "devices of the kernel's");
	r = check_size(&layer_struct, theirs->size, module->desc.abi_minor, why);
	if (r)
		return r;
	polycm_abi_copy(&module->layer, sizeof(module->layer), theirs);
	module->desc.layer = &module->layer;
	return 0;
}

/* ------------------------------------------------------------------------
 * Settings.
 */

static int check_option(const struct polycm_option *option, const char *prefix, char *why)
{
	const char *name = option->name;

	if (!name)
		return INVALID(why, "a setting has no name");
	if (strncmp(name, prefix, strlen(prefix)) != 0 || !name[strlen(prefix)] ||
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(name))
		return INVALID(why, "its setting %s is not called %s<NAME>", name, prefix);
	if (!option->default_value || !option->help)
		return INVALID(why, "its setting %s has no default or no help", name);
	return 0;
}

/* The rows are as far apart as the plugin's version of the struct is long. */
static int copy_options(struct polycm_module *module, const struct polycm_provider *theirs,
			char *why)
{
	char prefix[sizeof("POLYCM__") + PROVIDER_NAME_MAX];
	const char *row = (const char *)theirs->options;
	struct polycm_option *options;
	uint32_t stride;
	int r;

	if (!theirs->num_options)
		return 0;
	if (!row || !is_aligned(row) || theirs->num_options > MAX_OPTIONS)
		return INVALID(why, "its %u settings cannot be true", theirs->num_options);
	stride = theirs->options->size;
	r = check_size(&option_struct, stride, module->desc.abi_minor, why);
	if (r)
		return r;
	if (stride % _Alignof(struct polycm_option))
		return INVALID(why, "its settings have a size of %u bytes", stride);

	polycm_provider_prefix(module->name, prefix, sizeof(prefix));
	options = calloc(theirs->num_options, sizeof(*options));
	if (!options)
		return -ENOMEM;
	for (uint32_t i = 0; i < theirs->num_options; i++, row += stride) {
		uint32_t size;

		memcpy(&size, row, sizeof(size));
		if (size != stride) {
			r = INVALID(why, "its settings differ in size");
			goto err_free;
		}
		polycm_abi_copy(&options[i], sizeof(options[i]), row);
		r = check_option(&options[i], prefix, why);
		if (r)
			goto err_free;
	}
	module->desc.options = options;
	module->desc.num_options = theirs->num_options;
	return 0;

err_free:
	free(options);
	return r;
}

/* ------------------------------------------------------------------------
 * The provider.
 */

static int check_names(const struct polycm_provider *theirs, const char *name, char *why)
{
	if (!theirs->name)
		return INVALID(why, "it has no name");
	if (strnlen(theirs->name, PROVIDER_NAME_MAX + 1) > PROVIDER_NAME_MAX ||
	    !polycm_provider_name_valid(theirs->name))
		return INVALID(why, "its name '%.*s' is not valid", PROVIDER_NAME_MAX, theirs->name);
	if (strcmp(theirs->name, name) != 0)
		return INVALID(why, "it calls itself %s, not %s", theirs->name, name);
	return 0;
}

static int copy_transport(struct polycm_module *module, char *why)
{
	const struct polycm_transport *theirs = module->desc.transport;

	if (!theirs)
		return 0;
	if (!is_aligned(theirs))
		return INVALID(why, "its transport rules are not aligned");
	module->desc.transport = &module->transport;
	return polycm_transport_copy(&module->transport, theirs, module->desc.abi_minor, why);
}

/* Each flag changes who owns what, so an unknown one cannot be ignored. */
static int check_flags(uint32_t flags, char *why)
{
	uint32_t unknown = flags & ~(uint32_t)POLYCM_PROVIDER_FLAGS;

	return unknown ? INVALID(why, "its flag 1 << %d is not known", ffs((int)unknown) - 1) : 0;
}

static int fill(struct polycm_module *module, const struct polycm_provider *theirs,
		const char *name, char *why)
{
	struct polycm_provider *desc = &module->desc;
	int r;

	r = check_size(&provider_struct, theirs->size, theirs->abi_minor, why);
	if (!r)
		r = check_names(theirs, name, why);
	if (r)
		return r;

	polycm_abi_copy(desc, sizeof(*desc), theirs);
	/* polycm_module_free() frees these; the plugin's are copied below. */
	desc->options = NULL;
	desc->num_options = 0;
	r = check_flags(desc->flags, why);
	if (!r)
		r = copy_layer(module, why);
	if (!r)
		r = copy_ops(&module->ops, desc, why);
	if (r)
		return r;
	if (desc->flags & POLYCM_PROVIDER_KERNEL) {
		desc->id_size = polycm_kernel_id_size;
		desc->channel_size = polycm_kernel_channel_size;
	}
	if (desc->layer)
		desc->channel_size = 0;
	/* Operations get only the area of an id. */
	if (!desc->id_size && (!desc->layer || module->layer.begin))
		return INVALID(why, "its id_size is 0: its operations are given an area of each id, "
			      "so it must be 1 or more");
	if (desc->id_size > MAX_AREA || desc->channel_size > MAX_AREA)
		return INVALID(why, "its areas of %u and %u bytes are too large", desc->id_size,
			      desc->channel_size);
	r = copy_transport(module, why);
	if (r)
		return r;
	module->name = strdup(name);
	if (!module->name)
		return -ENOMEM;
	r = copy_options(module, theirs, why);
	if (r)
		return r;

	desc->name = module->name;
	desc->ops = &module->ops;
	if (!desc->version)
		desc->version = "";
	if (!desc->description)
		desc->description = "";
	return 0;
}

void polycm_module_free(struct polycm_module *module)
{
	free((void *)(uintptr_t)module->desc.options);
	free(module->name);
	free(module->path);
	free(module);
}

/* Another version may be the reason for the refusal. */
static void add_version(const struct polycm_provider *theirs, char *why)
{
	size_t len = strlen(why);

	if (POLYCM_HAS(theirs, abi_minor) && theirs->abi_minor != POLYCM_ABI_MINOR)
		snprintf(why + len, PROVIDER_WHY_SIZE - len, " (it was built for version %d.%u of "
			 "the provider ABI, this is %d.%d)", POLYCM_ABI_MAJOR, theirs->abi_minor,
			 POLYCM_ABI_MAJOR, POLYCM_ABI_MINOR);
}

int polycm_module_new(const struct polycm_provider *theirs, const char *name, const char *path,
		      struct polycm_module **ret_module, char *why)
{
	struct polycm_module *module;
	int r;

	if (!theirs || !is_aligned(theirs))
		return INVALID(why, "it describes no provider");
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	module->path = strdup(path);
	r = module->path ? fill(module, theirs, name, why) : -ENOMEM;
	if (r == -EINVAL)
		add_version(theirs, why);
	if (r)
		polycm_module_free(module);
	else
		*ret_module = module;
	return r;
}
