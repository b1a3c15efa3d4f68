# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# What the virtual machine boots, made once and kept in $cache; sourced by tests/kernel/vm. prepare_image sets
#
#	kernel_image		the kernel, of Debian's package linux-image-6.12-amd64
#	kernel_modules		folder of its modules, with siw, which Debian does not build
#	kernel_initramfs	with the modules that are always loaded
#
# The version is that of the installed package linux-headers-6.12-amd64, which is needed to build siw. The
# kernel itself need not be installed, as that takes long and makes an initrd for this machine: unless it is
# there already, it is unpacked into the cache, and so is siw's source from the package linux-source-6.12.

# Always loaded, those before that they depend on as well. rxe refuses a link without the two checksums.
image_modules='crc32_generic crc32c_generic 9p 9pnet_virtio overlay veth sch_netem dummy
	ib_uverbs rdma_ucm rdma_rxe siw'
image_applets='sh mount insmod mkdir cat switch_root poweroff'

prepare_image() {
	local program

	for program in qemu-system-x86_64 busybox cpio xz depmod modprobe flock; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null && continue
		say "$program is not installed (./check --kernel installs what is needed)"
		return 1
	done
	PATH=$PATH:/usr/sbin:/sbin
	kernel_version=$(image_version)
	if [ -z "$kernel_version" ]; then
		say 'the package linux-headers-6.12-amd64 is not installed (./check --kernel does it)'
		return 1
	fi
	kernel_root=$cache/$kernel_version
	kernel_modules=$kernel_root/lib/modules/$kernel_version
	kernel_image=$kernel_root/vmlinuz
	# One at a time: several machines may be started at once.
	exec {image_lock}>"$cache/lock" || return 1
	flock "$image_lock" || return 1
	image_kernel && image_initramfs
	program=$?
	exec {image_lock}>&-
	return "$program"
}

image_version() {
	local headers newest=

	for headers in /usr/src/linux-headers-6.12.*-amd64; do
		[ -e "$headers/Module.symvers" ] && newest=${headers#/usr/src/linux-headers-}
	done
	printf '%s' "$newest"
}

# Kernel and modules.
image_kernel() {
	local version=$kernel_version

	[ ! -e "$kernel_root/complete" ] || return 0
	say "preparing the kernel $version (once)"
	rm -rf "$kernel_root"
	mkdir -p "$kernel_modules" || return 1
	if [ -r "/boot/vmlinuz-$version" ] && [ -d "/lib/modules/$version/kernel" ]; then
		cp "/boot/vmlinuz-$version" "$kernel_image" &&
		cp -r "/lib/modules/$version"/{kernel,modules.order,modules.builtin*} "$kernel_modules"
	else
		image_unpack "linux-image-$version" "$kernel_root/image" &&
		mv "$kernel_root/image/boot/vmlinuz-$version" "$kernel_image" &&
		mv "$kernel_root"/image/{,usr/}lib/modules/"$version"/* "$kernel_modules" 2>/dev/null
		rm -rf "$kernel_root/image"
	fi
	if [ ! -s "$kernel_image" ] || [ ! -d "$kernel_modules/kernel" ]; then
		say "no kernel: neither installed nor to be had from the package linux-image-$version"
		return 1
	fi
	image_siw && depmod -b "$kernel_root" "$version" && touch "$kernel_root/complete"
}

# image_unpack PACKAGE FOLDER: of the version of the kernel's headers.
image_unpack() {
	local package=$1 folder=$2 version

	version=$(dpkg-query -W -f '${Version}' "linux-headers-$kernel_version") || return 1
	mkdir -p "$folder.deb" "$folder" || return 1
	if ! (cd "$folder.deb" && apt-get -q download "$package=$version") >"$cache/download.log" 2>&1; then
		tail -n 5 "$cache/download.log" >&2
		say "the package $package $version cannot be downloaded (apt-get update may help)"
		return 1
	fi
	dpkg -x "$folder.deb"/*.deb "$folder"
	local status=$?
	rm -rf "$folder.deb"
	return "$status"
}

image_siw() {
	local folder=$kernel_root/siw source=/usr/src/linux-source-6.12.tar.xz

	if [ ! -s "$source" ]; then
		image_unpack linux-source-6.12 "$kernel_root/source" || return 1
		source=$kernel_root/source$source
	fi
	if ! mkdir -p "$folder" "$kernel_modules/updates" ||
	   ! tar -C "$folder" --strip-components=5 -xf "$source" linux-source-6.12/drivers/infiniband/sw/siw; then
		say "no source of siw in $source"
		return 1
	fi
	rm -rf "$kernel_root/source"
	if ! make -C "/usr/src/linux-headers-$kernel_version" "M=$folder" CONFIG_RDMA_SIW=m -j2 modules \
		>"$cache/siw.log" 2>&1 </dev/null; then
		tail -n 20 "$cache/siw.log" >&2
		say "siw does not build (all of its output: $cache/siw.log)"
		return 1
	fi
	strip --strip-debug -o "$kernel_modules/updates/siw.ko" "$folder/siw.ko" && rm -rf "$folder"
}

image_initramfs() {
	local key folder

	key=$(cat "$here/image.sh" "$here/init" "$(command -v busybox)" "$kernel_modules/modules.dep" |
		sha256sum | cut -c 1-16)
	kernel_initramfs=$cache/initramfs-$kernel_version-$key
	[ ! -e "$kernel_initramfs" ] || return 0
	# Those of other versions of these scripts, unless one may be about to boot.
	find "$cache" -maxdepth 1 -name 'initramfs-*' -mmin +60 -exec rm -rf {} +
	folder=$kernel_initramfs.tmp
	mkdir -p "$folder"/{bin,modules,dev,proc,sys,control,host,upper,root} &&
	image_busybox "$folder/bin" &&
	cp "$here/init" "$folder/init" && chmod 755 "$folder/init" &&
	image_load_list "$folder/modules" &&
	(cd "$folder" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$kernel_initramfs.new" &&
	mv "$kernel_initramfs.new" "$kernel_initramfs" && rm -rf "$folder"
}

image_busybox() {
	local applet

	cp "$(command -v busybox)" "$1/busybox" || return 1
	if ldd "$1/busybox" >/dev/null 2>&1; then
		say 'busybox is not static: the package busybox-static is needed'
		return 1
	fi
	for applet in $image_applets; do
		ln -s busybox "$1/$applet" || return 1
	done
}

# image_load_list FOLDER: the modules, not compressed, and FOLDER/list with the order to load them in.
image_load_list() {
	local folder=$1 module path

	for module in $image_modules; do
		modprobe -d "$kernel_root" -S "$kernel_version" --show-depends "$module" || return 1
	done >"$folder/depends"
	while read -r module path _; do
		[ "$module" = insmod ] || continue
		module=$(basename "$path" .xz)
		[ ! -e "$folder/$module" ] || continue
		case $path in
		*.xz) xz -dc "$path" >"$folder/$module" ;;
		*) cp "$path" "$folder/$module" ;;
		esac || return 1
		echo "$module" >>"$folder/list"
	done <"$folder/depends"
}
