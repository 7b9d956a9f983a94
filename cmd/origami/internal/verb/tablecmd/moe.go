package tablecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/plugins/serving"
)

// tokenSizes are the numbers of tokens that a table has a kernel for, as vLLM's have. For others, the servers take the
// nearest one.
var tokenSizes = []int{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096}

type moeOptions struct {
	options
	shared
	sized
	adopted
	loaded
	Explain bool `json:"explain" help:"list every kernel with the reason"`
}

func newMoE(f *session.Factory) *cobra.Command {
	o := &moeOptions{options: options{factory: f}}
	cmd := &cobra.Command{
		Use:   "fused-moe [CONFIG] --arch ARCH",
		Short: "Write the table of vLLM's and SGLang's fused_moe kernel",
		Long: "Write the table of kernels that vLLM and SGLang take for the experts of a model, given as its\n" +
			"Hugging Face config.json: for each number of tokens the tile, warps and stages that are predicted\n" +
			"to be the fastest for both products of a layer, and the gain over the server's without a table.\n" +
			"--output writes a folder for VLLM_TUNED_CONFIG_FOLDER, or with --sglang for SGLANG_MOE_CONFIG_DIR,\n" +
			"with a second file for the second product. CONFIG may be the line of a server's log about a file that\n" +
			"it has not found, or a file with such a line. The answer says whether the server reads the table, and\n" +
			"how it compares with one that the server ships. A table that is not read is not written.",
		Example: "  origami table fused-moe config.json --arch h100 --tp 2 --output tables\n" +
			"  VLLM_TUNED_CONFIG_FOLDER=tables vllm serve …\n" +
			"  origami table fused-moe config.json --arch l40s --sglang 3.5.1 --output tables\n" +
			"  origami table fused-moe config.json --arch h200 --load zipf=1.1 --explain\n" +
			"  origami table fused-moe --experts 64 --top-k 6 --hidden 2048 --inner 1408 --arch h100\n" +
			"  origami table fused-moe 'Config file not found at …/E=16,N=1536,device_name=NVIDIA_H200.json' \\\n" +
			"    --top-k 8 --hidden 4096 --arch h200",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	session.Register(cmd.Flags(), o)
	return cmd
}

// uniform is the load without --load.
const uniform = "uniform"

// loaded is how popular experts are.
type loaded struct {
	Load string `json:"load" arg:"LOAD" default:"uniform" help:"a LOAD, how popular the experts are: uniform, zipf=1.1, or a weight for each, divided by commas"`
}

func (o *moeOptions) run(ctx context.Context, args []string) error {
	in, err := o.read(ctx, args)
	if err != nil {
		return err
	}
	if in.config == nil {
		return diag.Inputf("it is the name of a table of one matrix").At("%s", in.name).
			Do("`origami table block-fp8` has its kernels")
	}
	if o.SGLang != "" && strings.Trim(o.SGLang, "0123456789.") != "" {
		return diag.Inputf("--sglang %s is no version of Triton", o.SGLang).
			Do("give what python prints as triton.__version__, as in 3.5.1")
	}
	if in.asked != nil && len(args) == 1 && o.Experts == 0 {
		o.factory.Streams.Note("the file is taken to have all experts of a layer: add --experts N if GPUs divide them")
	}
	t, side, err := o.table(ctx, o.factory, &in, o.TP, o.Load, o.DeviceName)
	if err != nil {
		return err
	}
	if err := o.unread(o.factory.Streams, o.Output, t.Gain, &t.Read); err != nil {
		return err
	}
	if o.Output != "" {
		if err := o.install(t); err != nil {
			return err
		}
	}
	return o.write(side, t)
}

// table chooses the kernels of a model's experts.
func (o *shared) table(ctx context.Context, f *session.Factory, in *input, tp int, load, device string) (
	*expertTable, *ask.Contender, error,
) {
	side, err := openWeights(ctx, f, in.weights())
	if err != nil {
		return nil, nil, err
	}
	e, layers, err := o.expertsOf(in, tp, side.Describe().Arch)
	if err != nil {
		return nil, nil, err
	}
	l, err := parseLoad(load, e.all)
	if err != nil {
		return nil, nil, err
	}
	tuner, err := e.tuner(ctx, side)
	if err != nil {
		return nil, nil, err
	}
	t := &expertTable{kernelTable: newTable(side, e, in, device, in.config.Label(tp)),
		TP: tp, EP: e.ep, Experts: e.count, TopK: e.topK, Hidden: e.hidden, Inter: e.inter, Layers: layers, Load: load}
	t.Read.Backend = serving.BackendOf(o.server(), true, e.weights, t.Arch, e.ep)
	return t, side, t.choose(ctx, tuner, e, l)
}

// kernelTable is what tables have in common.
type kernelTable struct {
	Arch       string `json:"arch"` // the device
	Device     string `json:"device"`
	DeviceName string `json:"device_name"`
	Model      string `json:"model"` // the model, and the kernel family of its products
	Kernel     string `json:"kernel"`
	DType      string `json:"dtype"` // the type of the weights
	// the rows and columns of the weights that have a scale in common, absent for one per tensor
	ScaleBlock []int  `json:"scale_block,omitempty"`
	For        string `json:"for"`      // type, layers and hidden size of the language model, and tp
	Evidence   string `json:"evidence"` // what the interval rests on
	// the geometric mean of the gains
	Gain float64 `json:"gain" unit:"ratio"`

	gains []float64
}

func newTable(side *ask.Contender, e *experts, in *input, device, label string) kernelTable {
	d := side.Describe()
	return kernelTable{Arch: d.Arch, Device: d.Device, DeviceName: in.deviceName(device, d.DeviceName), Model: d.Model,
		Kernel: side.Kernel, DType: e.dtype.String(), ScaleBlock: e.scaled(), For: label}
}

// tableKernel is what runs for numbers of rows nearest to M.
type tableKernel struct {
	M      int    `json:"m"` // rows, or tokens
	Config expert `json:"config"`
	// the predicted time, of experts with the kernels that route, activate and sum
	Seconds        float64     `json:"seconds" unit:"s"`
	Interval       *[2]float64 `json:"interval"`                 // of 90 %, `null` without one
	DefaultSeconds float64     `json:"default_seconds" unit:"s"` // with the server's kernel without a table
	// default_seconds ÷ seconds beyond what predictions are off by, 1.05; at least 1
	Gain float64 `json:"gain" unit:"ratio"`
	// what all such layers of a step take less than without a table, by the gain
	Saved float64 `json:"saved_seconds" unit:"s"`
	Bound string  `json:"bound"` // what limits the first product, and why
	Why   string  `json:"why"`
}

// add returns the best kernel, for so many layers.
func (t *kernelTable) add(ctx context.Context, c *choices, m, layers int) (tableKernel, error) {
	last := len(c.configs) - 1
	r, entry, err := c.entry(ctx)
	if err = cmp.Or(err, c.runs(last)); err != nil {
		return tableKernel{}, err
	}
	k := tableKernel{M: m, Config: expertOf(&c.configs[c.best]), Seconds: c.time(c.best), DefaultSeconds: c.time(last),
		Bound: entry.Estimate.Bound.String(), Why: r.Why(entry)}
	k.Gain = max(1, k.DefaultSeconds/k.Seconds/doubt)
	k.Saved = float64(layers) * (k.Gain - 1) * k.Seconds
	k.Interval, t.Evidence = c.interval(r, entry, k.Seconds)
	t.gains = append(t.gains, k.Gain)
	t.Gain = stats.Geomean(t.gains)
	return k, nil
}

// expertTable is a table of kernels for the fused_moe kernel of vLLM and SGLang.
type expertTable struct {
	kernelTable
	TP      int    `json:"tp"`          // the GPUs that divide each expert among them
	EP      int    `json:"ep"`          // the GPUs that divide the experts among them
	Experts int    `json:"experts"`     // of a layer, on one GPU
	TopK    int    `json:"top_k"`       // experts for each token
	Hidden  int    `json:"hidden_size"` // K of the first product, and N of the second
	Inter   int    `json:"inter_size"`  // K of the second product on one GPU; N of the first is twice that
	Layers  int    `json:"layers"`      // with experts
	Load    string `json:"load"`        // how popular the experts are
	// whether the server reads the table
	Read reading `json:"read"`
	// the kernels, in the order of M: config is for both products, as vLLM takes it
	Kernels []expertKernel `json:"kernels"`
}

// expertKernel is a kernel for experts.
type expertKernel struct {
	tableKernel
	Up        expert  `json:"up"` // for the first product and for the second one, as SGLang takes them
	Down      expert  `json:"down"`
	Active    int     `json:"active_experts"` // experts that get a token
	SplitGain float64 `json:"split_gain"`     // seconds ÷ the time with up and down
}

// expert is a configuration under the names of the servers' files.
type expert struct {
	BlockM    int `json:"BLOCK_SIZE_M"` // rows and columns of a tile of C, and the step along K
	BlockN    int `json:"BLOCK_SIZE_N"`
	BlockK    int `json:"BLOCK_SIZE_K"`
	GroupM    int `json:"GROUP_SIZE_M"` // rows of tiles that are computed column by column
	NumWarps  int `json:"num_warps"`    // warps of a CTA, and buffers of the loop
	NumStages int `json:"num_stages"`
	// AMD's, as the axes of these names; absent where the kernel does not say them
	WavesPerEU  *int `json:"waves_per_eu,omitempty"`
	Instruction int  `json:"matrix_instr_nonkdim,omitempty"`
	KPack       int  `json:"kpack,omitempty"`
}

// The axes of AMD's kernels.
const wavesAxis, instructionAxis, kpackAxis = "waves_per_eu", "matrix_instr_nonkdim", "kpack"

func expertOf(c *gemm.Config) expert {
	e := expert{BlockM: c.BlockM, BlockN: c.BlockN, BlockK: c.BlockK, GroupM: c.GroupM, NumWarps: c.NumWarps,
		NumStages: c.NumStages}
	number := func(name string, byDefault int) int {
		text, _ := c.Axes.Get(name)
		v, _ := strconv.Atoi(text)
		return cmp.Or(v, byDefault)
	}
	if e.Instruction = number(instructionAxis, 0); e.Instruction > 0 {
		waves := number(wavesAxis, 0)
		e.WavesPerEU, e.KPack = &waves, number(kpackAxis, 1)
	}
	return e
}

// axes are AMD's keys as named axes, without what Triton takes anyway.
func (e expert) axes() (axes gemm.Axes, err error) {
	for name, v := range map[string]int{wavesAxis: *cmp.Or(e.WavesPerEU, new(int)), instructionAxis: e.Instruction,
		kpackAxis: e.KPack} {
		if v != 0 && (name != kpackAxis || v != 1) && err == nil {
			axes, err = axes.With(name, strconv.Itoa(v))
		}
	}
	return axes, err
}

func (e expert) String() string {
	text := fmt.Sprintf("%dx%dx%d w%d s%d g%d", e.BlockM, e.BlockN, e.BlockK, e.NumWarps, e.NumStages, e.GroupM)
	if e.Instruction > 0 {
		text += fmt.Sprintf(" mfma%d kpack%d", e.Instruction, e.KPack)
	}
	return text
}

// choose chooses the kernels of a layer.
func (t *expertTable) choose(ctx context.Context, side *tuner, e *experts, l load) error {
	name := fileName(t.Read.Server, e, t.DeviceName)
	theirs := t.Read.shipped(name, tokenSizes)
	second := theirs
	if t.Read.Server == sglang {
		if downs := t.Read.shipped(down(name), tokenSizes); downs[0] != noKernel {
			second = downs
		}
	}
	for i, rows := range l.rows(e, tokenSizes) {
		c, err := side.choices(ctx, e, tokenSizes[i], rows, theirs[i], second[i])
		if err != nil {
			return err
		}
		one, err := t.add(ctx, c, tokenSizes[i], t.Layers)
		if err != nil {
			return err
		}
		idle := slices.DeleteFunc(slices.Clone(rows), func(n int) bool { return n > 0 })
		k := expertKernel{tableKernel: one, Active: len(rows) - len(idle)}
		k.split(c)
		own := len(side.space)
		if t.Read.Server == sglang {
			t.Read.compare(c.times[0][own]+c.times[1][own+1], k.Seconds/k.SplitGain)
		} else {
			t.Read.compare(c.time(own), k.Seconds)
		}
		t.Kernels = append(t.Kernels, k)
	}
	return nil
}

// split sets the fastest pair with one BLOCK_SIZE_M, by which the rows are sorted.
func (k *expertKernel) split(c *choices) {
	least := math.Inf(1)
	for _, m := range []int{16, 32, 64, 128, 256} {
		up, down := c.fastest(0, m), c.fastest(1, m)
		if up < 0 || c.times[0][up]+c.times[1][down] >= least {
			continue
		}
		least = c.times[0][up] + c.times[1][down]
		k.Up, k.Down, k.SplitGain = expertOf(&c.configs[up]), expertOf(&c.configs[down]), k.Seconds/least
	}
}

// install writes the files of a server.
func (o *moeOptions) install(t *expertTable) error {
	folder, note := o.Output, fmt.Sprintf("start vLLM with VLLM_TUNED_CONFIG_FOLDER=%s", o.Output)
	name := t.Read.Files[0]
	files := map[string]func(*expertKernel) expert{name: func(k *expertKernel) expert { return k.Config }}
	if o.SGLang != "" {
		folder = filepath.Join(folder, "configs", "triton_"+strings.ReplaceAll(o.SGLang, ".", "_"))
		note = fmt.Sprintf("start SGLang with SGLANG_MOE_CONFIG_DIR=%s", o.Output)
		files = map[string]func(*expertKernel) expert{
			name:       func(k *expertKernel) expert { return k.Up },
			down(name): func(k *expertKernel) expert { return k.Down },
		}
	}
	if err := makeFolder(folder, o.Output); err != nil {
		return err
	}
	for name, of := range files {
		kernels := map[int]expert{}
		for i := range t.Kernels {
			kernels[t.Kernels[i].M] = of(&t.Kernels[i])
		}
		if err := writeKernels(folder, name, kernels); err != nil {
			return err
		}
	}
	o.factory.Streams.Note(note)
	return nil
}

// makeFolder makes a folder of --output.
func makeFolder(folder, output string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return diag.Inputf("the folder cannot be made: %v", diag.WithoutPath(err)).At("--output %s", output).
			Do("choose another folder")
	}
	return nil
}

// writeKernels writes a file as the servers read it: kernels by the number of rows.
func writeKernels(folder, name string, kernels map[int]expert) error {
	text, err := json.MarshalIndent(kernels, "", "    ")
	if err != nil {
		return err
	}
	return session.ReplaceIn(folder, name, append(text, '\n'))
}

func (o *moeOptions) write(side *ask.Contender, t *expertTable) error {
	key, server := show.Key[expertKernel], "vLLM"
	if o.SGLang != "" {
		server = "SGLang"
	}
	return answer(o.factory, side, t, t.Evidence, func(s *iostreams.Streams) {
		show.Line(s, "table", "%s, %d layers of %d experts (%d per token), hidden %d, inner %d, %s, load %s", t.For,
			t.Layers, t.Experts, t.TopK, t.Hidden, t.Inter, typeOf(t.DType, t.ScaleBlock), t.Load)
		show.Line(s, "gain", "%s times as fast as %s without a table (predicted; geometric mean over the tokens)",
			s.Bold(digits.ThreeDigits(t.Gain)), server)
		show.Line(s, "read", "%s", &t.Read)
	}, t.Kernels, key("m", "tokens"), key("active_experts", "experts"), key("config", "kernel"), key("seconds", "layer"),
		show.Text("90 %", func(k *expertKernel) string { return span(k.Interval) }), key("default_seconds", "no table"),
		key("gain"), key("saved_seconds", "saved in a step"), key("why").If(o.Explain))
}

// typeOf is a type with its scales.
func typeOf(dtype string, block []int) string {
	if block == nil {
		return dtype
	}
	return fmt.Sprintf("%s with scales per %dx%d", dtype, block[0], block[1])
}
