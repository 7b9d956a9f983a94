//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/keep"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/fusedmoe"
	"github.com/origami-gemm/origami/plugins/nvidia/sgemm"
)

// device is a device of the plugin with a model and a kernel family.
type device struct {
	arch.OpenRequest
	kernel string
}

func (d device) String() string {
	return d.Arch + "@" + d.Device + " " + string(d.Rung) + " " + d.kernel
}

func refinedDevices(t *testing.T) (list []device) {
	t.Helper()
	for _, a := range nvtest.Provider(t).Manifest().Archs {
		for _, d := range a.Devices {
			for _, k := range a.Kernels {
				if !slices.Contains([]string{library.Family, sgemm.Family, fusedmoe.Family, fusedmoe.Blocks}, k) { // other models
					list = append(list, device{arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: "refined", Kernel: k}, k})
				}
			}
		}
	}
	return list
}

// sampled are one device of every architecture with each of its kernel families, those whose balance is another than
// theirs (little power, few FLOPs per byte), and the recorded one; with ORIGAMI_TEST_ALL=1 all devices.
func sampled(devices []device) []device {
	if os.Getenv("ORIGAMI_TEST_ALL") == "1" {
		return devices
	}
	type kind struct{ arch, kernel string }
	seen := map[kind]bool{}
	return slices.DeleteFunc(devices, func(d device) bool {
		again := seen[kind{d.Arch, d.kernel}]
		seen[kind{d.Arch, d.kernel}] = true
		return again && !slices.Contains([]string{"l4", "h20", "h200"}, d.Device)
	})
}

// libraries are the devices with the model of the vendor's library. All of the operands come from DRAM.
func libraries(t *testing.T) (list []device) {
	t.Helper()
	for _, r := range nvtest.Devices(t, library.Name, library.Family) {
		r.Options = map[string]string{"timing": "cold"}
		list = append(list, device{r, library.Family})
	}
	return list
}

// open returns the model with overrides of parameters.
func (d device) open(t *testing.T, overrides map[string]float64) arch.Architecture {
	t.Helper()
	return archtest.Open(t, nvtest.Provider(t), d.OpenRequest, overrides)
}

// best is the shortest predicted time over the candidates with some splits of K, in seconds.
func (d device) best(t *testing.T, a arch.Architecture, p gemm.Problem) float64 {
	t.Helper()
	return archtest.Fastest(t, a, p, arch.Space{Kernel: d.kernel, SplitK: []int{1, 4}})
}

// types are those that the family multiplies on the device.
func (d device) types(a arch.Architecture) (list []gemm.DType) {
	for _, t := range gemm.DTypes() {
		p := gemm.New(64, 64, 64)
		p.DType = t
		if a.Describe().SupportsTypes(d.kernel, &p) == nil {
			list = append(list, t)
		}
	}
	return list
}

// multiplied is the type that the matrix units multiply: fp16 where fp8 is converted.
func multiplied(t gemm.DType, params hw.Set) string {
	name := "peak_" + t.CostsLike().String()
	if _, ok := params.Lookup(name); !ok {
		return "peak_fp16"
	}
	return name
}

var whatIfProblems = []gemm.Problem{
	gemm.New(8192, 8192, 8192), gemm.New(1024, 1024, 1024), gemm.New(16, 8192, 8192), gemm.New(128, 4096, 14336),
	gemm.New(4096, 4096, 128), gemm.New(3072, 1024, 4096),
}

// computeBound is a product of at least 8192×8192×8192 that does several times the operations per byte, n/3 in 16 bits,
// that the matrix units do in the time of a byte of DRAM.
func computeBound(params hw.Set) gemm.Problem {
	n := 8192
	for float64(n)/3 < 4*params.Get("peak_fp16")/params.Get("dram_bandwidth") {
		n *= 2
	}
	return gemm.New(n, n, n)
}

// Half of what limits a kernel halves its rate, where the board has power to spare. A slice of a device, as MIG makes
// them, is as much slower as it has fewer SMs.
func TestWhatIfsAreProportional(t *testing.T) {
	decode := gemm.New(16, 28672, 8192)
	type values = map[string]float64
	for _, d := range sampled(slices.Concat(refinedDevices(t), libraries(t))) {
		plain := hw.Set(d.open(t, nil).Describe().Params)
		large := computeBound(plain)
		power := 10 * plain.Get("tdp") // the L4's 72 W limit it more than its SMs
		base := d.open(t, values{"tdp": power})
		half := func(name string) values { return values{name: math.Floor(plain.Get(name) / 2), "tdp": power} }
		sms := math.Floor(plain.Get("num_sms") / 4)
		slice := values{"num_sms": sms, "l2_bytes": math.Floor(plain.Get("l2_bytes") / 4),
			"dram_bandwidth": plain.Get("dram_bandwidth") / 4, "tdp": power}
		for name, c := range map[string]struct {
			with        values
			problem     gemm.Problem
			least, most float64 // slowdown
		}{
			"half of num_sms": {half("num_sms"), large, 1.9, 2.1}, "half of clock": {half("clock"), large, 1.85, 2.1},
			"half of peak_fp16":       {half("peak_fp16"), large, 1.35, 2.1},
			"half of dram_bandwidth":  {half("dram_bandwidth"), decode, 1.7, 2.1},
			"a quarter of everything": {slice, large, 0.92 * plain.Get("num_sms") / sms, 1.1 * plain.Get("num_sms") / sms},
		} {
			// A tile of wgmma has at least 64 rows. Where the tensor cores take longer for them than DRAM for B, as on an
			// H20, DRAM is not what limits the kernel.
			if rows := 64.0; d.kernel == "wgmma" && name == "half of dram_bandwidth" &&
				rows/plain.Get("peak_fp16") > 1/plain.Get("dram_bandwidth") {
				continue
			}
			// The wave of fewer SMs reuses less. Where DRAM is slow beside the tensor cores (GB10), it then limits the kernel.
			if plain.Get("peak_fp16") > 400*plain.Get("dram_bandwidth") {
				c.most *= 1.25
			}
			a := d.open(t, c.with)
			if slower := d.best(t, a, c.problem) / d.best(t, base, c.problem); slower < c.least || slower > c.most {
				t.Errorf("%s: with %s, %s takes %.3f times as long", d, name, c.problem, slower)
			}
			rate := c.problem.Flops() / d.best(t, a, c.problem)
			if peak := hw.Set(a.Describe().Params).Get("peak_fp16"); rate > peak {
				t.Errorf("%s: with %s, %s reaches %.3f of the peak", d, name, c.problem, rate/peak)
			}
		}
	}
}

// rounding is by how much the best time may go the wrong way, as the CTAs divide into other waves. Two sweeps of the
// same kernels differ by more (2 %).
const rounding = 0.005

// otherWaves is the same for what lets more CTAs onto an SM: where five of them run as four and one, the last one waits
// for its loads alone. As three and two, they finish earlier.
const otherWaves = 0.04

// A better part is never slower.
func TestMoreIsNeverSlower(t *testing.T) {
	for n, d := range slices.Concat(refinedDevices(t), libraries(t)) {
		switch { // without overrides the timing pass would count
		case d.Device == "h200":
			d.Rung = arch.RungCompiled
		case slices.Contains(data.TritonH200.Twins, d.Device):
			d.Rung = arch.RungSpec
		}
		base := d.open(t, nil)
		params, types := hw.Set(base.Describe().Params), d.types(base)
		for i, name := range []string{
			"num_sms", "clock", "l2_bytes", "l2_perf_ratio", "dram_bandwidth", "tdp", "peak_fp16", "register_file",
			"registers_per_thread", "shared_memory_bytes",
		} {
			if (n+i)%6 != 0 {
				continue // a sixth of them per device: each still counts on half a dozen devices
			}
			p, slack := whatIfProblems[(n+i)%len(whatIfProblems)], rounding
			p.DType = types[(n/2+i)%len(types)]
			p.SetTrans(false, p.DType.Bits() == 8)
			if name == "register_file" || name == "shared_memory_bytes" {
				slack = otherWaves
			}
			last := 0.0
			for _, factor := range []float64{2, 1.1, 1, 0.75, 0.5} {
				if name == "registers_per_thread" && factor > 1 {
					continue // an instruction names no more
				}
				a := d.open(t, map[string]float64{name: math.Floor(params.Get(name) * factor)})
				if name == "l2_bytes" { // when events time one launch, a larger L2 has more dirty lines to evict
					a = timing.In(a, timing.Model)
				}
				x := d.best(t, a, p)
				must.That(t, x >= last*(1-slack),
					"%s: with %g times its %s, %s takes %.4g µs, and with more %.4g", d, factor, name, p, x*1e6, last*1e6)
				last = max(x, last)
			}
		}
	}
}

// A larger problem never takes less time, if its rows are as well aligned to cache lines and no K step is cut off. Of
// mma along M and N that is so for whole tiles alone: where a tile is cut off, the kernel loads the last row again and
// again, and all SMs wait for one cache line. In the sweep of splits, tiles of 128x64 take up to 1.4 times as long with
// 16 rows as with 64. The library has a test of its own.
func TestMoreWorkIsNeverFaster(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	size := func(unit int) int { return unit * int(math.Exp(random.Float64()*math.Log(8192/float64(unit)))) }
	for n, d := range refinedDevices(t) {
		a := d.open(t, nil)
		types := d.types(a)
		for i := n % 2; i < 4; i += 2 { // a half of the layouts per device
			p := gemm.New(1, 1, size(256))
			p.DType = types[(n+i)%len(types)]
			p.SetTrans(i%4 == 3, i%2 == 1)
			unit := [3]int{16, 16, 256}
			for dim, contiguous := range []bool{p.TransA(), !p.TransB()} {
				if d.kernel == "mma" {
					unit[dim] = 256
				} else if contiguous {
					unit[dim] = 1024 / p.DType.Bits()
				}
			}
			p.M, p.N = size(unit[0]), size(unit[1])
			x := d.best(t, a, p)
			for dim, grow := range []func(*gemm.Problem, int){
				func(q *gemm.Problem, by int) { q.M += by }, func(q *gemm.Problem, by int) { q.N += by },
				func(q *gemm.Problem, by int) { q.K += by },
			} {
				q := p
				grow(&q, unit[dim]*(1+random.IntN(4)))
				y := d.best(t, a, q)
				must.That(t, y >= x*(1-rounding), "%s: %s takes %.4g µs, and %s %.4g", d, p, x*1e6, q, y*1e6)
			}
		}
	}
}

// No prediction is above the peak of the units that multiply the type, or faster than DRAM moves the matrices once. The
// library has a test of its own.
func TestPredictionsArePossible(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	size := func() int { return 16 * max(1, int(math.Exp(random.Float64()*math.Log(1024)))) }
	for n, d := range refinedDevices(t) {
		a := d.open(t, nil)
		params := hw.Set(a.Describe().Params)
		for i, dtype := range d.types(a) {
			if (n+i)%2 != 0 && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
				continue // a half of the types per device
			}
			problems := []gemm.Problem{gemm.New(16384, 16384, 16384), gemm.New(8192, 8192, 8192)}
			for range 2 {
				problems = append(problems, gemm.New(size(), size(), size()))
			}
			for _, p := range problems {
				p.DType = dtype
				x, peak := d.best(t, a, p), params.Get(multiplied(dtype, params))
				if rate := p.Flops() / x; rate > peak {
					t.Errorf("%s: %s reaches %.4g of the peak", d, p, rate/peak)
				}
				in, out := float64(p.DType.Bits())/8, float64(p.Output().Bits())/8
				bytes := in*(float64(p.M)*float64(p.K)+float64(p.N)*float64(p.K)) + out*float64(p.M)*float64(p.N)
				if bandwidth := params.Get("dram_bandwidth"); bytes/x > bandwidth {
					t.Errorf("%s: %s reaches %.4g of the DRAM bandwidth", d, p, bytes/x/bandwidth)
				}
			}
		}
	}
}

// Devices share a list of candidates only if it is the one of each of them, whatever number differs.
func TestSharedListsAreEqual(t *testing.T) {
	p := nvtest.Provider(t)
	for _, kernel := range []string{"triton", "triton_persistent", "mma", "wgmma"} {
		space := arch.Space{Kernel: kernel, BlockM: []int{64, 128}, BlockN: []int{128, 256}, BlockK: []int{64}}
		list := func(overrides map[string]hw.OverrideValue) (*arch.Candidates, *arch.Description) {
			a, err := p.Open(t.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200", Kernel: kernel, Overrides: overrides})
			if err != nil {
				return nil, nil // not every number can be half
			}
			c := must.Get(a.Candidates(t.Context(), gemm.New(4096, 4096, 4096), space))(t)
			return c, a.Describe()
		}
		base, d := list(nil)
		others := 0
		for _, param := range d.Params {
			overrides := map[string]hw.OverrideValue{param.Name: {Value: math.Round(param.Value / 2), Unit: param.Unit}}
			list(nil)
			shared, _ := list(overrides)
			keep.Drop()
			own, _ := list(overrides)
			must.That(t, reflect.DeepEqual(shared, own),
				"%s: with another %s it has the list of another device", kernel, param.Name)
			if own != nil && !reflect.DeepEqual(own, base) {
				others++
			}
		}
		must.That(t, others != 0, "%s: no number changes the list", kernel)
	}
}
