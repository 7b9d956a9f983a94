package tablecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/formats/hf"
)

// family is the kernel family of vLLM's batch-invariant matmul, and flatten how Triton compiles it.
const family, flatten = "triton_persistent", "flatten=on"

// sizes are the M that the table has a kernel for, denser for decoding than for prefill. For an M in between, vLLM
// takes the kernel of the next larger size. Beyond the last size, it takes the last kernel.
var sizes = []int{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
	8192}

// group is vLLM's GROUP_SIZE_M of every kernel (batch_invariant_configs._get_matmul_config).
const group = 8

// fixed is vLLM's tile for bf16 without a table (batch_invariant.matmul_persistent).
var fixed = gemm.Config{BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: group, SplitK: 1}

type invariantOptions struct {
	options
	Explain bool `json:"explain" help:"list every kernel: its time, evidence and price, and why"`
}

func newInvariant(f *session.Factory) *cobra.Command {
	o := &invariantOptions{options: options{factory: f}}
	cmd := &cobra.Command{
		Use:   "invariant CONFIG --arch ARCH",
		Short: "Write the table of vLLM's batch-invariant matmul",
		Long: "Write the table of kernels that vLLM takes for its linear layers with VLLM_BATCH_INVARIANT=1, for the\n" +
			"model of a config.json of Hugging Face: for each layer one BLOCK_K for all M, as the order of sums needs\n" +
			"it, and the best tile, warps and stages for each M. The answer says what that BLOCK_K costs, how sure the\n" +
			"times are, and how much faster than vLLM's fixed tile the table is, all predicted. --output writes a\n" +
			"folder that vLLM " + vllmVersion + " reads if it is in PYTHONPATH.",
		Example: "  origami table invariant config.json --arch sm90@h100 --output vllm-table\n" +
			"  PYTHONPATH=vllm-table VLLM_BATCH_INVARIANT=1 vllm serve …\n" +
			"  origami table invariant config.json --arch l40s --tp 2 --explain --format table",
		Args: session.OneArgument("CONFIG", "the config.json of a model"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	session.Register(cmd.Flags(), o)
	return cmd
}

func (o *invariantOptions) run(ctx context.Context, name string) error {
	in, err := new(sized).read(ctx, []string{name})
	if err != nil {
		return err
	}
	c := in.config
	if in.asked != nil {
		return diag.Inputf("it is the name of a file for another kernel").At("%s", name).Do("give the config.json of a model")
	}
	if c.Quantization != nil {
		return diag.Inputf("the model is quantized, and vLLM's table is for bf16 weights").At("%s", name).
			Do("give a model without a quantization_config")
	}
	if err := c.Sized(name); err != nil {
		return err
	}
	list, err := c.Products(o.TP)
	if err != nil {
		return err
	}
	side, err := openSide(ctx, o.factory, family, "split_k=1", flatten)
	if err != nil {
		return err
	}
	t, err := newInvariantTable(ctx, side, list)
	if err != nil {
		return err
	}
	t.For, t.TP = c.Label(o.TP), o.TP
	if cmp.Or(c.DType, c.TorchDType) == "float16" {
		o.factory.Streams.Warn("the model is in float16, for which vLLM " + vllmVersion +
			" reads no table: serve it with --dtype bfloat16")
	}
	noteUncompared(o.factory.Streams, c)
	if c.ExpertLayers() > 0 {
		o.factory.Streams.Note("experts run in another kernel: the table has the other layers")
	}
	if o.Output != "" {
		if err := t.install(o.Output); err != nil {
			return err
		}
		o.factory.Streams.Note(fmt.Sprintf("start vLLM with PYTHONPATH=%s VLLM_BATCH_INVARIANT=1", o.Output))
	}
	return o.write(side, t)
}

// openSide opens the device that the user named, with a kernel family and a space. An empty family is the device's.
func openSide(ctx context.Context, f *session.Factory, family string, space ...string) (*ask.Contender, error) {
	f.Settings.Kernel = ""
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 {
		return nil, diag.Inputf("%d architectures are given, and a table is for one", len(targets)).At("--arch").
			Do("leave one")
	}
	t := &targets[0]
	if family != "" && !slices.Contains(t.Arch.Kernels, family) {
		return nil, diag.Inputf("no model of %s predicts the kernel family %s", t.Arch.ID, family).At("--arch").
			Do("choose another device; `origami arch ls` lists their kernels")
	}
	t.OpenRequest.Kernel = family
	side, err := f.OpenSide(ctx, t, &question.Search{Space: space}, false)
	return &side, err
}

// linear is the product of a linear layer for m rows, whose weight is stored as N×K.
func linear(m, n, k int) gemm.Problem { return typedLinear(gemm.BF16, m, n, k) }

// typedLinear is linear with operands of a type. The output is in bf16.
func typedLinear(t gemm.DType, m, n, k int) gemm.Problem {
	p := gemm.New(m, n, k)
	p.DType, p.Out = t, gemm.BF16
	p.SetTrans(false, true)
	return p.Canonical()
}

// invariantTable is a table of kernels for vLLM's batch-invariant matmul.
type invariantTable struct {
	Format string `json:"format"` // the form of this object
	VLLM   string `json:"vllm"`   // the version of vLLM whose source was read
	Arch   string `json:"arch"`   // the device
	Device string `json:"device"`
	// the device's name in vLLM, which is the driver's
	DeviceName string       `json:"device_name"`
	Model      string       `json:"model"` // the model, the kernel family, and what its times are of
	Kernel     string       `json:"kernel"`
	Timing     string       `json:"timing,omitempty"`
	DType      string       `json:"dtype"`             // the type of the weights
	For        string       `json:"for"`               // type, layers and hidden size of the language model, and tp
	TP         int          `json:"tp"`                // the GPUs that divide each layer among them
	GroupM     int          `json:"group_m"`           // the group of every kernel
	Layers     []tableLayer `json:"layers"`            // the layers, once for each N and K
	Passes     []pass       `json:"passes"`            // all layers of a forward pass by M, without what is between them
	Gain       float64      `json:"gain" unit:"ratio"` // the geometric mean of the gains of the passes
}

// tableLayer has the kernels of the layers with one N and K.
type tableLayer struct {
	Names  []string `json:"names"` // the layers
	Count  int      `json:"count"` // how many of them a forward pass computes
	N      int      `json:"n"`     // columns and rows of B
	K      int      `json:"k"`
	BlockK int      `json:"block_k"` // the step along K that all kernels have
	// the time of the fastest kernels with it ÷ the time of the fastest of all − 1
	MeanPrice  float64  `json:"mean_price" unit:"fraction"`
	WorstPrice float64  `json:"worst_price" unit:"fraction"`
	WorstM     int      `json:"worst_m"`
	Kernels    []kernel `json:"kernels"`           // the kernels, in the order of M
	Gain       float64  `json:"gain" unit:"ratio"` // the geometric mean of the gains for all M

	seconds, fixedSeconds []float64 // by size, up to the most rows of the layer
	most                  int
}

// kernel is what runs for the rows up to M that the kernel before it does not have.
type kernel struct {
	M         int           `json:"m"`       // the largest M of the kernel, of which the times are
	BlockM    int           `json:"block_m"` // the configuration, without block_k and group_m
	BlockN    int           `json:"block_n"`
	NumWarps  int           `json:"num_warps"`
	NumStages int           `json:"num_stages"`
	Seconds   float64       `json:"seconds" unit:"s"` // the predicted time
	Interval  *[2]float64   `json:"interval"`         // of 90 %, `null` without one
	Evidence  arch.Evidence `json:"evidence"`         // what the interval rests on
	Bound     string        `json:"bound"`            // what limits the kernel, and the same in a sentence
	Why       string        `json:"why"`
	// the time ÷ the time of the fastest kernel of all − 1
	Price        float64 `json:"price" unit:"fraction"`
	FixedSeconds float64 `json:"fixed_seconds" unit:"s"` // the predicted time of vLLM's fixed tile
	Gain         float64 `json:"gain" unit:"ratio"`      // fixed_seconds ÷ seconds
}

// pass is a forward pass of M rows.
type pass struct {
	M            int     `json:"m"`                      // the rows
	Seconds      float64 `json:"seconds" unit:"s"`       // the predicted time with the table
	FixedSeconds float64 `json:"fixed_seconds" unit:"s"` // with vLLM's fixed tile
	Gain         float64 `json:"gain" unit:"ratio"`      // fixed_seconds ÷ seconds
}

// newInvariantTable chooses the kernels of all layers.
func newInvariantTable(ctx context.Context, side *ask.Contender, list []hf.Layer) (*invariantTable, error) {
	d := side.Describe()
	t := &invariantTable{Format: vllmFormat, VLLM: vllmVersion, Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName,
		Model: d.Model, Kernel: side.Kernel, Timing: d.Timing, DType: gemm.BF16.String(), GroupM: group}
	for _, l := range list {
		same := func(one tableLayer) bool { return one.N == l.N && one.K == l.K }
		if i := slices.IndexFunc(t.Layers, same); i >= 0 {
			known := &t.Layers[i]
			known.Names, known.Count, known.most = append(known.Names, l.Name), known.Count+l.Count, max(known.most, l.Most)
			continue
		}
		t.Layers = append(t.Layers, tableLayer{Names: []string{l.Name}, Count: l.Count, N: l.N, K: l.K, most: l.Most})
	}
	var g ask.Group
	errs := make([]error, len(t.Layers))
	for i := range t.Layers {
		g.Go(func() { errs[i] = t.Layers[i].choose(ctx, side) })
	}
	g.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	var gains []float64
	t.Passes = make([]pass, len(sizes))
	for i, m := range sizes {
		p := &t.Passes[i]
		p.M = m
		for j := range t.Layers {
			l := &t.Layers[j]
			at := min(i, len(l.seconds)-1)
			p.Seconds += float64(l.Count) * l.seconds[at]
			p.FixedSeconds += float64(l.Count) * l.fixedSeconds[at]
		}
		p.Gain = p.FixedSeconds / p.Seconds
		gains = append(gains, p.Gain)
	}
	t.Gain = stats.Geomean(gains)
	return t, nil
}

// choose fills in the kernels.
func (l *tableLayer) choose(ctx context.Context, side *ask.Contender) error {
	rows := slices.DeleteFunc(slices.Clone(sizes), func(m int) bool { return m > l.most })
	p := linear(rows[len(rows)-1], l.N, l.K)
	if err := p.Validate(); err != nil {
		return err
	}
	bands, err := side.Bands(ctx, p, ask.Range{List: rows, Same: []string{"block_k"}})
	if err != nil {
		return err
	}
	l.MeanPrice, l.WorstPrice, l.WorstM = bands.Same.MeanPrice, bands.Same.WorstPrice, bands.Same.WorstM
	estimate, gains := make([]arch.Estimate, 1), make([]float64, len(rows))
	for i := range bands.Bands {
		band := &bands.Bands[i]
		picked := *band.Config
		picked.GroupM = group
		p.M = band.MHigh
		without := fixed
		without.Kernel, without.Axes = picked.Kernel, picked.Axes
		if err := side.Model.Estimate(ctx, estimate, p, []gemm.Config{without}); err != nil {
			return err
		}
		if reason := estimate[0].Reject; reason != "" {
			return diag.Inputf("vLLM's fixed tile %s does not run (%s)", &fixed, reason).At("%s", side.Describe().ID()).
				Do("choose another device")
		}
		one, err := kernelOf(ctx, side, &p, &picked, estimate[0])
		if err != nil {
			return err
		}
		one.Price = band.MeanRegret
		l.seconds, l.fixedSeconds = append(l.seconds, one.Seconds), append(l.fixedSeconds, one.FixedSeconds)
		l.BlockK, gains[i] = picked.BlockK, one.Gain
		if last := len(l.Kernels) - 1; last >= 0 && l.Kernels[last].config() == one.config() {
			l.Kernels[last] = one
			continue
		}
		l.Kernels = append(l.Kernels, one)
	}
	l.Gain = stats.Geomean(gains)
	return nil
}

// entryOf estimates a configuration for a problem, with its terms, in a ranking of nothing else.
func entryOf(
	ctx context.Context, side *ask.Contender, p *gemm.Problem, c *gemm.Config,
) (*ask.Ranking, *ask.Entry, error) {
	d, estimate, configs := side.Describe(), make([]arch.Estimate, 1), []gemm.Config{*c}
	if err := side.Model.Estimate(ctx, estimate, *p, configs); err != nil {
		return nil, nil, err
	}
	e := &ask.Entry{Config: *c, Estimate: estimate[0], Terms: make([]float64, len(d.Terms))}
	r := &ask.Ranking{Arch: d, Kernel: side.Kernel, Problem: *p, DRAMPeak: ask.PeakBandwidth(side.Model)}
	return r, e, side.Model.Terms(ctx, e.Terms, *p, configs)
}

// kernelOf describes a configuration beside vLLM's kernel without a table.
func kernelOf(
	ctx context.Context, side *ask.Contender, p *gemm.Problem, c *gemm.Config, without arch.Estimate,
) (kernel, error) {
	r, e, err := entryOf(ctx, side, p, c)
	if err != nil {
		return kernel{}, err
	}
	k := kernel{M: p.M, BlockM: c.BlockM, BlockN: c.BlockN, NumWarps: c.NumWarps, NumStages: c.NumStages,
		Seconds: float64(r.Seconds(e)), Evidence: r.Scope(e).Evidence, Bound: e.Estimate.Bound.String(), Why: r.Why(e),
		FixedSeconds: float64(without.Cycles.At(r.Arch.Clock))}
	if low, high, ok := r.Interval(e); ok {
		k.Interval = &[2]float64{float64(low), float64(high)}
	}
	k.Gain = k.FixedSeconds / k.Seconds
	return k, nil
}

// config is the kernel without its block_k.
func (k *kernel) config() [4]int { return [4]int{k.BlockM, k.BlockN, k.NumWarps, k.NumStages} }
