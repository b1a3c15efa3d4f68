# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # the commands are expanded later; families are called by name
#
# The families of programs that `more' runs, in the order of the alphabet; see there.

# accelio's tests, for instance in the folders tests/usr/hello_test*. They need a card that notifies of completions that
# it had before its CQ was armed (docs/programs.md).
family_accelio() {
	local test size stays='' card='env POLYCM_SIM_DEVICE=$(accelio_card)'

	for test in '' mt_ ow_ oneway_ bidi_; do
		[ "$test" != bidi_ ] || stays=1
		for size in 4096 32768; do	# sent; read and written by RDMA
			pair "accelio xio_$test* $size" 'roce ib' "$card xio_${test}server -c 0 -p \$port -w $size \$address" \
				"$card xio_${test}client -c 1 -p \$port -w $size -f 1 \$address"
		done
	done
	stays=''
	pair 'accelio xio_rdma_*' 'roce ib' "$card xio_rdma_server -p \$port \$address" \
		"$card xio_rdma_client -p \$port \$address"
}
accelio_card() { [ "${transport-}" = ib ] && echo connectx-6 || echo connectx-5; }

# brpc's tests, and its example rdma_performance. That one's programs are called `client' and `server': here
# rdma_performance_client and rdma_performance_server, for instance symbolic links. The tests that are left out need
# brpc's stand-in for devices: without -rdma_test_enable. Many expect a result 0.1 s after the cause.
family_brpc() {
	local limit=600 good=some_tests_passed

	alone 'brpc RdmaTest' 'roce ib' "brpc_rdma_unittest --gtest_filter='RdmaTest.*-*_alloc_resource_fail_*' -rdma_test_enable"
	good=true stays=1
	pair 'brpc rdma_performance 4 KiB' 'roce ib' "$brpc_server" "$brpc_client=4096" tcp
	pair 'brpc rdma_performance 1 MiB' ib "$brpc_server" "$brpc_client=1048576" tcp
}
brpc_server='rdma_performance_server -port $port'
brpc_client='rdma_performance_client -servers $address:$port -thread_num 1 -test_seconds 2 -attachment_size'

some_tests_passed() { grep -q '^\[  PASSED  \] [1-9]' "$folder/client.out"; }

# A monitor and an OSD with its objects in memory, and a client. Ceph's messenger exchanges the numbers of its QPs over
# TCP, or connects them by the RDMA CM. The monitor is killed, because it may wait forever when it is to end: if
# rdma_accept() fails, ceph does not acknowledge the request.
family_ceph() {
	local limit=180 needs='ceph ceph-mon ceph-osd rados' before=ceph_files ceph_cm=

	pair ceph 'roce ib' 'bash ./cluster' 'bash ./client' 'the cluster is ready'
	ceph_cm=$'ms_async_rdma_cm = true\nms_async_rdma_type = iwarp'	# its name for the way to connect
	pair 'ceph by RDMA CM' 'roce ib iwarp' 'bash ./cluster' 'bash ./client' 'the cluster is ready'
}
ceph_files() {
	cat >"$folder/ceph.conf" <<-END
		[global]
		fsid = $(cat /proc/sys/kernel/random/uuid)
		mon_host = [v2:$own_address:$port]
		public_addr = $own_address
		ms_bind_msgr1 = false
		ms_type = async+rdma
		ms_async_rdma_device_name = sim0
		$ceph_cm
		auth_cluster_required = none
		auth_service_required = none
		auth_client_required = none
		keyring = /dev/null
		mon_allow_pool_size_one = true
		osd_pool_default_size = 1
		osd_objectstore = memstore
		mon_data = mon
		osd_data = osd
		run_dir = .
		admin_socket =
		log_file = \$name.log
	END
	cat >"$folder/cluster" <<-END
		export CEPH_CONF=ceph.conf
		set -e
		id=\$(cat /proc/sys/kernel/random/uuid)	# of the OSD
		trap 'kill \$osd \$mon' EXIT
		mkdir mon osd
		mkfifo end
		monmaptool --create --fsid \$(ceph-conf fsid) --addv a '[v2:$own_address:$port]' monmap
		ceph-mon -i a --mkfs --monmap monmap
		ceph-mon -i a -f &
		mon=\$!
		ceph osd new \$id
		ceph-osd -i 0 --mkfs --osd-uuid \$id --no-mon-config
		ceph-osd -i 0 -f &
		osd=\$!
		ceph osd pool create pool 4
		echo the cluster is ready
		read -r _ <end
		kill \$osd
		wait \$osd
		kill -KILL \$mon
		trap - EXIT
	END
	cat >"$folder/client" <<-END
		export CEPH_CONF=ceph.conf
		set -e
		head -c 3000000 /dev/urandom >in
		rados -p pool put object in
		rados -p pool get object out
		cmp in out
		rados -p pool bench 2 write --no-cleanup -b 65536
		rados -p pool bench 2 seq
		echo >end
	END
}

# libfabric's tests: a folder that has runfabtests.sh. What libfabric excludes is left out, and what cannot pass
# (docs/programs.md): the server of a failed test may keep its port for a minute, so that the next tests fail, too.
# runfabtests.sh kills all that is called fi_*, not only what it started.
family_fabtests() {
	local limit=1800 good=no_fabtest_failed before=list_excluded list excluded sets

	sets='-t unit,functional,short -T 60 -f excluded -c $own_address -s $own_address'
	list=verbs excluded=$'fi_msg_sockets\nrma_bw -e msg -o writedata'
	alone 'fabtests verbs' 'roce ib' "runfabtests.sh $sets verbs"
	excluded+=$'\nfi_multi_ep\nfi_flood\nfi_msg_pingpong\nfi_msg_bw\nfi_rma_bw'
	alone 'fabtests verbs' iwarp "runfabtests.sh $sets verbs"
	list=ofi_rxm excluded=
	alone 'fabtests verbs;ofi_rxm' 'roce ib iwarp' "runfabtests.sh $sets 'verbs;ofi_rxm'"
}
list_excluded() {
	local script lists

	# Installed, or in libfabric's tree.
	script=$(command -v runfabtests.sh) && script=$(realpath "$script") || return
	for lists in "${script%/*}"/../{share/fabtests/,}test_configs; do
		[ ! -d "$lists" ] || printf '%s\n' "$(cat "$lists/$list/$list.exclude")" "$excluded" >"$folder/excluded"
	done
	[ -e "$folder/excluded" ] || { echo "libfabric's $list.exclude is not found" >"$folder/why"; return 1; }
}
no_fabtest_failed() { grep -q '^# Total Fail  *0$' "$folder/client.out"; }

# The examples of rdma-core; the others of them are in ./check.
family_examples() {
	local all='roce ib iwarp' stays='' program options='-p $port' sizes='-S 1000000 -C 1 -I 20 -p $port'

	pair rping "$all" "rping -s -C 5 -v -V $options" "rping -c -a \$address -C 5 -v -V $options"
	pair ucmatose "$all" "ucmatose -c 10 -C 10 $options" "ucmatose -c 10 -C 10 $options -s \$address"
	pair udaddy 'roce ib' 'udaddy -c 3' "udaddy -c 3 -s \$address"
	pair rdma_client "$all" "rdma_server $options" "rdma_client $options -s \$address"
	pair rstream "$all" "rstream -b \$address $sizes" "rstream -s \$address $sizes"
	pair riostream "$all" "riostream -b \$address $sizes" "riostream -s \$address $sizes"
	stays=1
	pair cmtime "$all" "cmtime -c 100 $options" "cmtime -c 100 $options -s \$address"
	pair rcopy "$all" "rcopy $options" "rcopy /etc/services \$address:\$folder/copied $options"
	stays=''
	for program in ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong; do
		pair "$program -g 0" roce "$program $options -g 0" "$program $options -g 0 \$address" tcp
		pair "$program" ib "$program $options" "$program $options \$address" tcp
	done
}

family_fio() {
	# As many receives as blocks: the sender requests no RNR retries.
	local verb common='--ioengine=rdma --port=$port --bs=64k --size=1m --iodepth=16 --name=job'

	for verb in write read send; do
		pair "fio $verb" 'roce ib iwarp' "fio $common --rw=read" \
			"fio $common --rw=write --hostname=\$address --verb=$verb"
	done
}

# The tests of zap, LDMS's library for transports: a folder that has them. ZAP_LIBPATH is the folder of libzap_rdma.so,
# if that is not installed. What fails is in docs/programs.md.
family_ldms() {
	local test stays='' good=client_said text ends='-x rdma -p $port' all='roce ib iwarp'

	text='mem0 == mem1 VERIFIED'
	pair zap_test_big "$all" "zap_test_big $ends -s" "zap_test_big $ends -h \$address"
	text='ZAP_EVENT_DISCONNECTED'
	pair zap_test_disconnect "$all" "zap_test_disconnect $ends -s" "zap_test_disconnect $ends -h \$address"
	stays=1 text='ZAP_EVENT_CONNECTED to'
	pair zap_test_reconnect_many "$all" "zap_test_reconnect_many $ends -s" \
		"zap_test_reconnect_many $ends -h \$address -n 1 -r 1"
	text='1024 read completions'	# again each second, without an end
	pair zap_test_many_read "$all" "zap_test_many_read $ends -s" \
		"sh -c \"zap_test_many_read $ends -h \$address & sleep 4; kill \\\$!\""
	text='data verified' test='zap_test_shared_map -x rdma:$address:$port -m'
	pair zap_test_shared_map "$all" "$test server" "sh -c \"$test writer && $test reader\""
}
client_said() { grep -qF "$text" "$folder/client.out"; }

family_libfabric() {
	fi_pingpong msg 'roce ib iwarp' verbs
	fi_pingpong rdm 'roce ib iwarp' 'verbs;ofi_rxm'
	fi_pingpong dgram 'roce ib' verbs
}
fi_pingpong() {
	local program="fi_pingpong -e $1 -p '$3' -I 10"

	pair "fi_pingpong $1" "$2" "$program -B \$port" "$program -P \$port \$address" tcp
}

# Mooncake's transfer engine: the folder of its tests and that of its examples. Two tests of
# rdma_endpoint_reestablish_test are left out: they need a device whose best GID has index 0 or 1. The target's line of
# log comes just before it can be reached.
family_mooncake() {
	local limit=600 good=some_tests_passed before=five_cards

	alone 'mooncake reestablish' 'roce ib' \
		"env POLYCM_SIM_SCENARIO=cards rdma_endpoint_reestablish_test --gtest_filter='-*AutoGidReprobe'"
	before=true
	alone 'mooncake topology' 'roce ib' topology_test
	alone 'mooncake endpoint_store' 'roce ib' endpoint_store_integration_test
	alone 'mooncake loopback' 'roce ib' 'rdma_loopback_test --metadata_server=P2PHANDSHAKE'
	alone 'mooncake large_mr' 'roce ib' 'env MC_MAX_MR_SIZE=67108864 rdma_large_mr_test'
	stays=1
	mooncake_pair transport_test2 rdma_transport_test2
	good=true
	mooncake_pair transport_test rdma_transport_test
	mooncake_pair validator 'transfer_engine_validator --duration=2 --threads=4 --batch_size=16'
	mooncake_pair 'bench read' 'transfer_engine_bench --duration=2 --operation=read'
	mooncake_pair 'bench write' 'transfer_engine_bench --duration=2 --operation=write'
}
mooncake_pair() {	# NAME INITIATOR
	local common='--metadata_server=P2PHANDSHAKE --device_name=sim0 --local_server_name=$address:1'

	pair "mooncake $1" 'roce ib' \
		"env MC_LOG_LEVEL=TRACE MC_MIN_RPC_PORT=\$port MC_MAX_RPC_PORT=\$port \
		 rdma_transport_test --mode=target --buffer_size=1073741824 $common" \
		"$2 --segment_id=\$address:\$port $common" registerMemoryRegion:
}
five_cards() {
	local card=connectx-5 host separator='('

	[ "$transport" = roce ] || card=connectx-6
	{
		echo 'nodes = ( { name = "host"; devices = '
		for host in 1 2 3 4 5; do
			echo "$separator { device = \"$card\"; addresses = \"10.0.0.$host/24\"; }"
			separator=,
		done
		echo '); } );'
	} >"$folder/cards"
}

# mpi_ring.py, a ring and a reduction, with the system's Python and mpi4py. Debian's openib cannot connect its QPs by the
# CM, and finds no port on RoCE (docs/programs.md).
family_openmpi() {
	local limit=120 needs=mpirun before=mpi_files good=mpi_passed layer

	/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || needs=mpi4py
	for layer in rc ud; do
		together "openmpi ucx $layer" 'roce ib' \
			"env UCX_TLS=$layer UCX_UD_VERBS_ETH_DGID_CHECK=n $mpi_run --mca pml ucx $mpi_ring"
	done
	together 'openmpi ofi' 'roce ib iwarp' \
		"$mpi_run --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' $mpi_ring"
	together 'openmpi openib' ib "$mpi_run --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 $mpi_ring"
}
mpi_run='env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	mpirun --mca plm_rsh_agent $shell_two --host $address_of_one,$address'
mpi_ring='/usr/bin/python3 mpi_ring.py'
mpi_files() { cp "$abs_top_srcdir/tests/programs/mpi_ring.py" "$folder"; }
mpi_passed() { grep -q '^2 passed' "$folder/client.out"; }

family_perftest() {
	local runs=$perftest_runs limit=30 verb kind program options

	for verb in send write read atomic; do
		for kind in bw lat; do
			program=ib_${verb}_$kind options='-n 100 -p $port'
			pair "$program" 'roce ib' "$program $options" "$program $options \$address" tcp
			pair "$program -R" "roce ib$([ "$verb" = atomic ] || echo ' iwarp')" \
				"$program -R $options" "$program -R $options \$address"
		done
	done
}

# rdma-core's tests: a folder that has run_tests.py.
family_pyverbs() {
	local suite

	suite=$(command -v run_tests.py) || suite=run_tests.py
	alone pyverbs 'roce ib' "$suite -v test_rdmacm test_qp test_cq test_mr test_pd test_addr"
}

# A virtual machine without a disk and without KVM, which goes on at the other host.
family_qemu() {
	local pin needs=qemu-system-x86_64 before=qemu_files good=qemu_moved

	for pin in off on; do
		pair "qemu rdma-pin-all $pin" 'roce ib iwarp' 'bash ./destination' 'bash ./source'
	done
}
qemu_files() {
	local qemu='qemu-system-x86_64 -accel tcg -m 32 -nodefaults -no-user-config -display none -monitor stdio'

	mkfifo "$folder/end" && chmod 666 "$folder/end" &&
	echo "{ read -r _ <end; echo info status; echo quit; } | $qemu -incoming rdma:$address:$port" \
		>"$folder/destination" &&
	cat >"$folder/source" <<-END
		printf '%s\\n' 'migrate_set_capability rdma-pin-all $pin' 'migrate rdma:$address:$port' \\
			'info migrate' quit | $qemu
		echo >end
	END
}
qemu_moved() {
	grep -q '^Migration status: completed' "$folder/client.out" && grep -q '^VM status: running' "$folder/server.out"
}

family_qperf() {
	local test stays=1 tests='rc_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw'

	for test in $tests ud_bw ud_lat uc_bw uc_lat; do
		pair "qperf $test" ib 'qperf -lp $port' "qperf -lp \$port -t 1 \$address $test" tcp
	done
	for test in $tests; do	# rc_rdma_write_bw writes with immediate data, which iWARP lacks
		pair "qperf $test -cm 1" "roce ib$([ "$test" = rc_rdma_write_bw ] || echo ' iwarp')" 'qperf -lp $port' \
			"qperf -lp \$port -t 1 \$address -cm 1 $test" tcp
	done
}

family_sockperf() {
	local sockets=1 stays=1 before call options

	for call in recvfrom select poll epoll; do
		options="-f list -F $call"
		before=list_tcp
		pair "sockperf tcp $call" 'roce ib iwarp' "sockperf server $options" "sockperf ping-pong -t 1 $options"
		before=list_udp
		pair "sockperf udp $call" 'roce ib' "sockperf server $options" "sockperf ping-pong -t 1 $options" udp
	done
}
list_tcp() { echo "T:$address:$port" >"$folder/list"; }
list_udp() { echo "U:$own_address:$port" >"$folder/list"; }

# On RoCE UCX 1.13 tells IPv4 datagrams from IPv6 ones by what a ConnectX reports as the service level, and drops them on
# other cards, unless it does not check the GID.
family_ucx() {
	local test layer settings good=ucx_measured

	for layer in rc ud; do
		settings="env UCX_TLS=$layer UCX_UD_VERBS_ETH_DGID_CHECK=n"
		for test in tag_lat tag_bw stream_bw ucp_am_lat ucp_put_bw ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap; do
			pair "ucx_perftest $layer $test" 'roce ib' "$settings ucx_perftest -p \$port" \
				"$settings ucx_perftest -p \$port -t $test -n 100 \$address" tcp
		done
	done
}
ucx_measured() { grep -q '^Final: ' "$folder/client.out"; }

# UCX's tests of connections: a folder that has gtest. The test that is left out connects from an IPv6 address to an
# IPv4 address.
family_ucx_gtest() {
	local limit=3600 good=some_tests_passed layer

	alone 'ucx_gtest rdmacm' 'roce ib' "gtest --gtest_filter='rdmacm/*sockaddr*-*conn_to_non_exist_ip/4'"
	for layer in rc ud; do
		alone "ucx_gtest $layer" 'roce ib' "gtest --gtest_filter='$layer/*sockaddr*'"
	done
	for layer in ib shm_ib all; do
		alone "ucx_gtest $layer" roce "gtest --gtest_filter='$layer/*sockaddr*'"
	done
}

# Valkey's tests/rdma: a folder that has run.py. It writes into Valkey's tree, which is copied; its exit status says
# nothing. It needs Python's netifaces.
family_valkey() {
	# shellcheck disable=SC2318 # the value that it had is meant
	local limit=120 before=copy_valkey good=valkey_passed PATH=$PATH path=$PATH

	alone valkey 'roce ib' run.py
}
copy_valkey() {
	local tree

	tree=$(PATH=$path command -v run.py) && tree=${tree%/*}/../.. &&
	mkdir "$folder/src" "$folder/tests" && cp -p "$tree"/src/valkey-{server,rdma.so} "$folder/src" &&
	cp -pR "$tree/tests/rdma" "$folder/tests" && chmod -R a+rwX "$folder" && PATH=$folder/tests/rdma:$path
}
valkey_passed() { grep -q '^Valkey Over RDMA test over .* \[OK\]' "$folder/client.out"; }
