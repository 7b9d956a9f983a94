package tablecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/serving"
)

// tokenSizes are the numbers of tokens that a table has a kernel for, as vLLM's have. For others, the servers take the
// nearest one.
var tokenSizes = []int{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096}

type moeOptions struct {
	options
	loaded
	Explain bool   `json:"explain" help:"list every kernel with the reason"`
	SGLang  string `json:"sglang" arg:"VERSION" help:"write it for SGLang with this VERSION of Triton, as in 3.5.1"`
}

func newMoE(f *session.Factory) *cobra.Command {
	o := &moeOptions{options: options{factory: f}}
	cmd := &cobra.Command{
		Use:   "fused-moe CONFIG --arch ARCH",
		Short: "Write the table of vLLM's and SGLang's fused_moe kernel",
		Long: "Write the table of kernels that vLLM and SGLang take for the experts of a model, given as its\n" +
			"Hugging Face config.json: for each number of tokens the tile, warps and stages that are predicted\n" +
			"to be the fastest for both products of a layer, and the gain over the server's without a table.\n" +
			"--output writes a folder for VLLM_TUNED_CONFIG_FOLDER, or with --sglang for SGLANG_MOE_CONFIG_DIR,\n" +
			"with a second file for the second product.",
		Example: "  origami table fused-moe config.json --arch h100 --tp 2 --output tables\n" +
			"  VLLM_TUNED_CONFIG_FOLDER=tables vllm serve …\n" +
			"  origami table fused-moe config.json --arch l40s --sglang 3.5.1 --output tables\n" +
			"  origami table fused-moe config.json --arch h200 --load zipf=1.1 --explain",
		Args: session.OneArgument("CONFIG", "the config.json of a model"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
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

func (o *moeOptions) run(ctx context.Context, name string) error {
	c, err := readConfig(ctx, name)
	if err != nil {
		return err
	}
	e, layers, err := expertsOf(c, name, o.TP)
	if err != nil {
		return err
	}
	if o.SGLang != "" && strings.Trim(o.SGLang, "0123456789.") != "" {
		return diag.Inputf("--sglang %s is no version of Triton", o.SGLang).
			Do("give what python prints as triton.__version__, as in 3.5.1")
	}
	if o.SGLang != "" {
		e.server = serving.SGLang
	}
	l, err := parseLoad(o.Load, e.count)
	if err != nil {
		return err
	}
	side, err := e.open(ctx, o.factory)
	if err != nil {
		return err
	}
	t, err := newExpertTable(ctx, side, e, l)
	if err != nil {
		return err
	}
	t.For, t.TP, t.Load, t.Layers = c.Label(o.TP), o.TP, o.Load, layers
	if o.Output != "" {
		if err := o.install(t); err != nil {
			return err
		}
	}
	return o.write(side.Contender, t)
}

func readConfig(ctx context.Context, name string) (*hf.Config, error) {
	text, err := session.ReadText(ctx, name, limit.Text, "give the config.json of a model")
	if err != nil {
		return nil, err
	}
	return hf.Decode(name, text)
}

// expertTable is a table of kernels for the fused_moe kernel of vLLM and SGLang.
type expertTable struct {
	Arch       string `json:"arch"` // the device
	Device     string `json:"device"`
	DeviceName string `json:"device_name"`
	Model      string `json:"model"` // the model, and the kernel family of its products
	Kernel     string `json:"kernel"`
	DType      string `json:"dtype"` // the type of the weights
	// the rows and columns of the weights that have a scale in common, absent for one per tensor
	ScaleBlock []int  `json:"scale_block,omitempty"`
	For        string `json:"for"`         // type, layers and hidden size of the language model, and tp
	TP         int    `json:"tp"`          // the GPUs that divide each expert among them
	Experts    int    `json:"experts"`     // of a layer
	TopK       int    `json:"top_k"`       // experts for each token
	Hidden     int    `json:"hidden_size"` // K of the first product, and N of the second
	Inter      int    `json:"inter_size"`  // K of the second product on one GPU; N of the first is twice that
	Layers     int    `json:"layers"`      // with experts
	Load       string `json:"load"`        // how popular the experts are
	Evidence   string `json:"evidence"`    // what the interval rests on
	// the kernels, in the order of M
	Kernels []expertKernel `json:"kernels"`
	Gain    float64        `json:"gain" unit:"ratio"` // the geometric mean of the gains
}

// expertKernel is what runs for numbers of tokens nearest to M.
type expertKernel struct {
	M      int    `json:"m"`      // tokens
	Config expert `json:"config"` // for both products, as vLLM takes it
	Up     expert `json:"up"`     // for the first product and for the second one, as SGLang takes them
	Down   expert `json:"down"`
	Active int    `json:"active_experts"` // experts that get a token
	// the predicted time of a layer, with the kernels that route, activate and sum
	Seconds        float64     `json:"seconds" unit:"s"`
	Interval       *[2]float64 `json:"interval"`                 // of 90 %, `null` without one
	DefaultSeconds float64     `json:"default_seconds" unit:"s"` // with the server's kernel without a table
	Gain           float64     `json:"gain" unit:"ratio"`        // default_seconds ÷ seconds
	SplitGain      float64     `json:"split_gain"`               // seconds ÷ the time with up and down
	Bound          string      `json:"bound"`                    // what limits the first product, and why
	Why            string      `json:"why"`
}

// expert is a configuration under the names of the servers' files.
type expert struct {
	BlockM    int `json:"BLOCK_SIZE_M"` // rows and columns of a tile of C, and the step along K
	BlockN    int `json:"BLOCK_SIZE_N"`
	BlockK    int `json:"BLOCK_SIZE_K"`
	GroupM    int `json:"GROUP_SIZE_M"` // rows of tiles that are computed column by column
	NumWarps  int `json:"num_warps"`    // warps of a CTA, and buffers of the loop
	NumStages int `json:"num_stages"`
}

func expertOf(c *gemm.Config) expert {
	return expert{c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages}
}

func (e expert) String() string {
	return fmt.Sprintf("%dx%dx%d w%d s%d g%d", e.BlockM, e.BlockN, e.BlockK, e.NumWarps, e.NumStages, e.GroupM)
}

// newExpertTable chooses the kernels of a layer.
func newExpertTable(ctx context.Context, side *tuner, e *experts, l load) (*expertTable, error) {
	d := side.Describe()
	t := &expertTable{Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, Model: d.Model, Kernel: side.Kernel,
		DType: e.dtype.String(), ScaleBlock: e.scaled(), Experts: e.count, TopK: e.topK, Hidden: e.hidden, Inter: e.inter}
	var gains []float64
	for i, rows := range l.rows(e.topK, tokenSizes) {
		c, err := side.choices(ctx, e, tokenSizes[i], rows)
		if err != nil {
			return nil, err
		}
		last := len(c.configs) - 1
		if err := c.runs(last); err != nil {
			return nil, err
		}
		r, entry, err := c.entry(ctx)
		if err != nil {
			return nil, err
		}
		idle := slices.DeleteFunc(slices.Clone(rows), func(n int) bool { return n > 0 })
		k := expertKernel{M: tokenSizes[i], Config: expertOf(&c.configs[c.best]), Active: len(rows) - len(idle),
			Seconds: c.time(c.best), DefaultSeconds: c.time(last), Bound: entry.Estimate.Bound.String(), Why: r.Why(entry)}
		k.Gain = k.DefaultSeconds / k.Seconds
		k.split(c)
		k.Interval, t.Evidence = c.interval(r, entry, k.Seconds)
		t.Kernels, gains = append(t.Kernels, k), append(gains, k.Gain)
	}
	t.Gain = stats.Geomean(gains)
	return t, nil
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

// fileName is the name by which a server looks for the table.
func (t *expertTable) fileName(sglang bool) string {
	device := strings.ReplaceAll(t.DeviceName, " ", "_")
	if !sglang && slices.Contains(strings.Split(device, "_"), "H200") {
		device = "NVIDIA_H200" // whatever else the name has (fused_moe.get_config_file_name)
	}
	name := fmt.Sprintf("E=%d,N=%d,device_name=%s", t.Experts, t.Inter, device)
	if t.DType == gemm.FP8.String() {
		name += ",dtype=fp8_w8a8"
	}
	return name + blockShape(t.ScaleBlock, sglang)
}

// blockShape is the part of a file's name about scales per block. SGLang's has a space.
func blockShape(block []int, sglang bool) string {
	switch {
	case block == nil:
		return ""
	case sglang:
		return fmt.Sprintf(",block_shape=[%d, %d]", block[0], block[1])
	}
	return fmt.Sprintf(",block_shape=[%d,%d]", block[0], block[1])
}

// install writes the files of a server.
func (o *moeOptions) install(t *expertTable) error {
	folder, note := o.Output, fmt.Sprintf("start vLLM with VLLM_TUNED_CONFIG_FOLDER=%s", o.Output)
	files := map[string]func(*expertKernel) expert{".json": func(k *expertKernel) expert { return k.Config }}
	if o.SGLang != "" {
		folder = filepath.Join(folder, "configs", "triton_"+strings.ReplaceAll(o.SGLang, ".", "_"))
		note = fmt.Sprintf("start SGLang with SGLANG_MOE_CONFIG_DIR=%s", o.Output)
		files = map[string]func(*expertKernel) expert{
			".json":      func(k *expertKernel) expert { return k.Up },
			"_down.json": func(k *expertKernel) expert { return k.Down },
		}
	}
	if err := makeFolder(folder, o.Output); err != nil {
		return err
	}
	for end, of := range files {
		kernels := map[int]expert{}
		for i := range t.Kernels {
			kernels[t.Kernels[i].M] = of(&t.Kernels[i])
		}
		if err := writeKernels(folder, t.fileName(o.SGLang != "")+end, kernels); err != nil {
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
	}, t.Kernels, key("m", "tokens"), key("active_experts", "experts"), key("config", "kernel"), key("seconds", "layer"),
		show.Text("90 %", func(k *expertKernel) string { return span(k.Interval) }), key("default_seconds", "no table"),
		key("gain"), key("why").If(o.Explain))
}

// typeOf is a type with its scales.
func typeOf(dtype string, block []int) string {
	if block == nil {
		return dtype
	}
	return fmt.Sprintf("%s with scales per %dx%d", dtype, block[0], block[1])
}
