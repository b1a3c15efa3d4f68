#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run --sockets: programs for TCP over rsockets.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

program=$work/sockets
cp "$abs_top_builddir/tests/programs/sockets" "$program" && chmod a+rx "$program" || exit 99

# Alone, in virtual time.
for transport in "${transports[@]}"; do
	check "each call on $transport" eval 'POLYCM_SIM_CLOCK=virtual exits 0 polycm run --transport "$transport" \
		--sockets "$program" each && [ ! -s "$work/err" ] || ! cat "$work/err"'
done

# --- Two processes. ---

port=$((10000 + $$ % 10000))

# carries TRANSPORT: ${server_command[@]} and ${client_command[@]}, with $folder for their files.
carries() {
	folder=$work/pair
	mkdir -p "$folder"
	pair_run=("${command[@]}" run --transport "$1" --fabric "test-$$-$1" --log info --sockets --)
	pair "$folder" && return
	tail -n 20 "$folder"/{server,client}.{out,log}
	return 1
}

for transport in "${transports[@]}"; do
	server_command=("$program" serve) client_command=("$program" send)
	check "what was sent before exit() arrives on $transport" carries "$transport"
done

if command -v iperf >/dev/null; then
	server_command=(iperf -s -B 127.0.0.1 -p "$port" -P 1)
	client_command=(iperf -c 127.0.0.1 -p "$port" -n 10M)
	for transport in "${transports[@]}"; do
		check "iperf on $transport" eval 'carries "$transport" && has "$folder/client.out" "10.0 MBytes"'
	done
fi

head -c 300000 /dev/urandom >"$work/data" && chmod a+r "$work/data"
# By their own names: `nc' is either of them.
# shellcheck disable=SC2016
for nc in 'nc.openbsd -l 127.0.0.1 PORT|nc.openbsd -N 127.0.0.1 PORT' \
	'nc.traditional -n -l -s 127.0.0.1 -p PORT|nc.traditional -n -q 0 127.0.0.1 PORT'; do
	command -v "${nc%% *}" >/dev/null || continue
	nc=${nc//PORT/$port}
	# shellcheck disable=SC2206
	server_command=(${nc%|*})
	client_command=(bash -c "exec ${nc#*|} <\"\$1\"" _ "$work/data")
	for transport in "${transports[@]}"; do
		check "${nc%% *} on $transport" eval 'carries "$transport" && cmp "$work/data" "$folder/server.out"'
	done
done

# --- Beside the auditor. ---

# What a program opens while it runs uses the same library as its sockets.
if [ -e "$auditor" ] && python=$(PATH=/usr/bin:/bin command -v python3); then
	cat >"$work/both.py" <<'END'
import ctypes, errno, select, socket
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_get_device_name.restype = ctypes.c_char_p
assert verbs.ibv_get_device_name(ctypes.c_void_p(verbs.ibv_get_device_list(None)[0])) == b"sim0"
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
listener = socket.create_server(("127.0.0.1", 7476))
# A stream's number is a duplicate of its rsocket's.
assert cm.rlisten(listener.fileno(), 1) == -1 and ctypes.get_errno() == errno.EBADF
client = socket.socket()
client.setblocking(False)
assert client.connect_ex(("127.0.0.1", 7476)) == errno.EINPROGRESS
select.select([listener], [client], [])
server = listener.accept()[0]
server.sendall(b"hello")
client.setblocking(True)
assert client.recv(5) == b"hello"
client.close()
assert server.recv(5) == b""
print("both")
END
	chmod a+r "$work/both.py"
	for transport in "${transports[@]}"; do
		check "sockets and dlopen() on $transport" eval 'exits 0 polycm run --transport "$transport" --sockets \
			"$python" "$work/both.py" && has "$work/out" both'
	done
fi

rm "$copy/lib/libpolycm-sockets.so"
check 'no libpolycm-sockets' exits 1 polycm run --sockets true
check 'it says which file is missing' has "$work/err" "$copy/lib/libpolycm-sockets.so" 'No such file'
check 'nothing is left of the simulated networks' nothing_left
finish
