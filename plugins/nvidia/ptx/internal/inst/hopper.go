package inst

import (
	"fmt"
	"slices"
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

// The extents along n of the warpgroup's multiplication, in steps of WgmmaStepN.
const (
	WgmmaStepN = 8
	wgmmaMaxN  = 256
)

// wgmma returns the multiplications of a warpgroup, from shared memory, by extent along n and type.
func wgmma() (rows []Instruction) {
	for n := WgmmaStepN; n <= wgmmaMaxN; n += WgmmaStepN {
		sums := dstVec(F32, n/2)
		for _, t := range wgmma16 {
			rows = append(rows, row(fmt.Sprintf("WgmmaM64N%dK16F32%s", n, t.name),
				fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s", n, t.ptx, t.ptx), sm90a,
				fmt.Sprintf("d = a · b, plus d if add; descriptors of a 64×16 and b 16×%d in %s; "+
					"transposed operands are contiguous along m or n", n, t.text),
				sums, src("a", B64), src("b", B64), src("add", Pred), Operand{Literal: "1"}, Operand{Literal: "1"},
				src("transA", Int), src("transB", Int)))
		}
		for _, t := range wgmma8 {
			rows = append(rows, row(fmt.Sprintf("WgmmaM64N%dK32F32%s", n, t.name),
				fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk32.f32.%s.%s", n, t.ptx, t.ptx), sm90a,
				fmt.Sprintf("d = a · b, plus d if add; descriptors of a 64×32 and b 32×%d in %s, both contiguous along k",
					n, t.text),
				sums, src("a", B64), src("b", B64), src("add", Pred), Operand{Literal: "1"}, Operand{Literal: "1"}))
		}
	}
	return rows
}

// The types of operands that wgmma has here, in the order of the rows of one extent.
var (
	wgmma16 = []wgmmaType{{"f16", "F16", "fp16"}, {"bf16", "BF16", "bf16"}}
	wgmma8  = []wgmmaType{{"e4m3", "E4M3", "fp8 e4m3"}, {"e5m2", "E5M2", "fp8 e5m2"}}
)

// wgmmaType is a type of operands: in PTX, in the name of the constructor, in text.
type wgmmaType struct{ ptx, name, text string }

// Wgmma returns the row of Table of the multiplication with an extent of n along N for operands of a PTX type (f16,
// bf16, e4m3, e5m2), -1 if there is none.
func Wgmma(n int, operands string) int {
	if n < WgmmaStepN || n > wgmmaMaxN || n%WgmmaStepN != 0 {
		return -1
	}
	types := slices.Concat(wgmma16, wgmma8)
	i := slices.IndexFunc(types, func(t wgmmaType) bool { return t.ptx == operands })
	if i < 0 {
		return -1
	}
	return len(general()) + len(hopper()) + len(types)*(n/WgmmaStepN-1) + i
}
