# SPDX-License-Identifier: BSD-2-Clause
#
# growth.awk: a public header as another version of the ABI might have it.
#
#	awk -v to=newer -f growth.awk HEADER	one member more at the end of each struct that has a size, one kind of id,
#						one flag of providers, and minor 1
#	awk -v to=older -f growth.awk HEADER	one member less, where more than the size is left
#	awk -v to=rooms -f growth.awk HEADER	room for one more kind of id in the rules

function code(line) {
	gsub(/\/\*[^*]*\*\//, "", line)
	return line
}

# The struct's lines without its last member, whatever stands before that member as its comment.
function shorten(	i) {
	i = n - 1
	while (i > 0 && code(line[i]) !~ /;[ \t]*$/)
		i--
	return i > 0 && code(line[i]) !~ /^[ \t]*(uint32_t|size_t) size;/ ? i : n
}

function flush_struct(	i, last) {
	last = n
	if (sized && to == "older")
		last = shorten()
	for (i = 0; i <= last; i++)
		print line[i]
	if (sized && to == "newer")
		print name ~ /_ops$/ ? "\tint (*newer)(void *priv);" : "\tvoid *newer;"
	n = 0
}

inside && /^}/ {
	flush_struct()
	inside = 0
}
inside {
	line[++n] = $0
	if (n == 1)
		sized = $0 ~ /^\t(uint32_t|size_t) size;/
	next
}
/^struct polycm_[a-z_]* \{$/ {
	name = $2
	inside = 1
	n = 0
	line[0] = $0
	next
}
to == "newer" && /^#define POLYCM_ABI_MINOR / { sub(/MINOR 0/, "MINOR 1") }
to == "rooms" && /^#define POLYCM_KINDS_ROOM/ { sub(/8/, "9") }
to == "newer" && /^\tPOLYCM_KINDS[ \t]/ { print "\tPOLYCM_KIND_NEWER," }
to == "newer" && /^#define POLYCM_PROVIDER_FLAGS/ { print "#define POLYCM_PROVIDER_NEWER (1u << 3)" }
to == "newer" && /^\t\(POLYCM_PROVIDER_ON_REQUEST/ { sub(/\(/, "(POLYCM_PROVIDER_NEWER | ") }
{ print }
