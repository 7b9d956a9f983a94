package inst

import (
	"fmt"
	"sync"
)

// hopper are the instructions that came with sm_90: barriers in shared memory that count bytes, copies of tensor tiles,
// clusters.
var hopper = sync.OnceValue(func() []Instruction {
	return []Instruction{
		// Values that they need.
		row("MovB64Pack", "mov.b64", sm10, "d = a[1]:a[0]", dst(B64), vec("a", B32, 2)),
		row("MovB64Name", "mov.b64", sm10, "d = the parameter's address in the parameter space", dst(B64), src("a", Name)),
		row("PrefetchTensormap", "prefetch.tensormap", sm90, "reads the tensor map at a generic address ahead of its use",
			src("addr", Global)),
		row("CvtaParamU64", "cvta.param.u64", since(70, 77), "d = address a in the parameter space as a generic one",
			dst(B64), src("a", B64)),
		row("ShflSyncIdxB32", "shfl.sync.idx.b32", sm30, "d = a of the lane numbered lane",
			dst(B32), src("a", B32), src("lane", i32), Operand{Literal: "31"}, Operand{Literal: "-1"}),

		// Barriers in shared memory.
		row("MbarrierInitB64", "mbarrier.init.shared::cta.b64", sm90,
			"makes 8 bytes at addr a barrier whose phase ends after count arrivals", src("addr", Shared), src("count", i32)),
		row("MbarrierArriveB64", "mbarrier.arrive.shared::cta.b64", sm90,
			"arrives at the barrier at addr", Operand{Literal: "_"}, src("addr", Shared)),
		row("MbarrierArriveClusterB64", "mbarrier.arrive.shared::cluster.b64", sm90,
			"arrives at a barrier of any CTA of the cluster, at an address from mapa; orders no memory beyond its own CTA",
			Operand{Literal: "_"}, src("addr", Shared)),
		row("MbarrierArriveExpectTxB64", "mbarrier.arrive.expect_tx.shared::cta.b64", sm90,
			"arrives at the barrier at addr, whose phase then also waits for so many bytes of copies",
			Operand{Literal: "_"}, src("addr", Shared), src("bytes", i32)),
		row("MbarrierTryWaitParityB64", "mbarrier.try_wait.parity.shared::cta.b64", sm90,
			"waits a while; d = the phase of that parity of the barrier at addr has ended",
			dst(Pred), src("addr", Shared), src("parity", i32)),
		row("FenceMbarrierInit", "fence.mbarrier_init.release.cluster", sm90,
			"makes this thread's new barriers visible to the cluster"),
		row("FenceProxyAsyncShared", "fence.proxy.async.shared::cta", sm90,
			"orders this thread's accesses to shared memory with those of copies and of wgmma"),

		// Copies of tiles of a tensor.
		row("CpAsyncBulkTensor3D", "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes", sm90,
			"copies the tile of the tensor map that begins at from; its bytes count at the barrier",
			src("to", Shared), src("from", Tensor), src("barrier", Shared)),
		row("CpAsyncBulkTensor3DMulticast",
			"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster", sm90,
			"CpAsyncBulkTensor3D to the same addresses of all CTAs of the cluster whose bits in ctas are set",
			src("to", Shared), src("from", Tensor), src("barrier", Shared), src("ctas", B16)),
		row("CpAsyncBulkTensor3DStore", "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group", sm90,
			"copies a tile from shared memory to the tensor map's matrix, where it begins at to",
			src("to", Tensor), src("from", Shared)),
		row("CpAsyncBulkCommitGroup", "cp.async.bulk.commit_group", sm90,
			"closes the group of this thread's copies to global memory since the last one"),
		row("CpAsyncBulkWaitGroupRead", "cp.async.bulk.wait_group.read", sm90,
			"waits until at most the n youngest groups still read shared memory", src("n", Int)),
		row("StmatrixX4", "stmatrix.sync.aligned.m8n8.x4.shared.b16", since(90, 78),
			"writes four 8×8 matrices of 16-bit elements, a row of 16 bytes per address of lanes 0-31",
			store(Shared, B32, 4)...),
		row("StmatrixX4Trans", "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16", since(90, 78),
			"StmatrixX4 of the transposed matrices: a row of 16 bytes is a column", store(Shared, B32, 4)...),
		row("BarSyncThreads", "bar.sync", since(20, 20), "waits for so many threads of the CTA, whole warps, at barrier a",
			src("a", i32), src("threads", Int)),

		// Clusters.
		row("MapaSharedClusterU32", "mapa.shared::cluster.u32", since(90, 78),
			"d = the address that a has in the cluster's CTA of that rank", dst(B32), src("a", B32), src("cta", i32)),
		row("BarrierClusterArriveRelaxed", "barrier.cluster.arrive.relaxed", sm90,
			"arrives at the barrier of the cluster; orders no memory").flow(Barrier),
		row("BarrierClusterWait", "barrier.cluster.wait", since(90, 78),
			"waits until all threads of the cluster have arrived").flow(Barrier),
	}
})

// wgmma returns the multiplications of a warpgroup, 64 rows by n columns, from shared memory. They have no
// constructors: Wgmma of the builder finds them. Operands of 16 bits may be contiguous along m or n, which the last two
// say; others are contiguous along k.
func wgmma() (rows []Instruction) {
	one := Operand{Literal: "1"} // a factor of a or b, which integers do not have
	either := ops(one, one, src("transA", Int), src("transB", Int))
	for n := 8; n <= 256; n += 8 {
		for _, t := range []struct {
			operands, sums string
			k              int
			form           Form
			more           []Operand
		}{
			{"f16", "f32", 16, F32, either}, {"bf16", "f32", 16, F32, either},
			{"e4m3", "f32", 32, F32, ops(one, one)}, {"e5m2", "f32", 32, F32, ops(one, one)},
			{"tf32", "f32", 8, F32, ops(one, one)}, {"s8", "s32", 32, B32, nil},
		} {
			if n < 256 && (t.operands == "tf32" || t.operands == "s8") {
				continue // only the largest is used
			}
			rows = append(rows, row("",
				fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", n, t.k, t.sums, t.operands, t.operands), sm90a,
				"d = a · b, plus d if add; a and b are descriptors", append(ops(dstVec(t.form, n/2), src("a", B64),
					src("b", B64), src("add", Pred)), t.more...)...))
		}
	}
	return rows
}
