package tablecmd

import (
	"context"
	"fmt"
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
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/formats/hf"
)

type blockOptions struct{ options }

func newBlocks(f *session.Factory) *cobra.Command {
	o := &blockOptions{options{factory: f}}
	cmd := &cobra.Command{
		Use:   "block-fp8 CONFIG --arch ARCH",
		Short: "Write the tables of vLLM's and SGLang's fp8 matmul with scales per block",
		Long: "Write the tables of kernels that vLLM and SGLang take for the linear layers of a model in fp8 with\n" +
			"a scale per 128x128 of a weight, given as its Hugging Face config.json, where they run them in\n" +
			"Triton: for each number of rows the predicted best tile, warps and stages, and the gain over the\n" +
			"kernel without a table. --output writes a file for each layer, under the names of both servers.",
		Example: "  origami table block-fp8 config.json --arch h100 --tp 8 --output tables\n" +
			"  cp tables/*.json …/vllm/model_executor/layers/quantization/utils/configs/\n" +
			"  origami table block-fp8 config.json --arch h200 --json",
		Args: session.OneArgument("CONFIG", "the config.json of a model"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	session.Register(cmd.Flags(), o)
	return cmd
}

func (o *blockOptions) run(ctx context.Context, name string) error {
	c, err := readConfig(ctx, name)
	if err != nil {
		return err
	}
	if q := c.Quantization; q == nil || q.Method != "fp8" || !slices.Equal(q.Block, blockScaled.scaled()) {
		return diag.Inputf("the model is not in fp8 with scales per 128x128").At("%s", name).
			Do("give one whose quantization_config has weight_block_size [128, 128]")
	}
	if err := c.Complete(name); err != nil {
		return err
	}
	list, err := c.Products(o.TP)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(l hf.Layer) bool { return l.Name == hf.LMHead }) // it stays in bf16
	// A matrix of any size opens the model.
	one := blockScaled
	one.inter, one.hidden = scaleBlock, scaleBlock
	side, err := one.open(ctx, o.factory)
	if err != nil {
		return err
	}
	t, err := newBlockTable(ctx, side, list)
	if err != nil {
		return err
	}
	t.For, t.TP = c.Label(o.TP), o.TP
	if !slices.Contains(hf.Dense, c.ModelType) {
		o.factory.Streams.Note("experts run in another kernel: `origami table fused-moe` has their table")
	}
	if o.Output != "" {
		if err := t.install(o.Output); err != nil {
			return err
		}
		o.factory.Streams.Note("copy the files to vllm/model_executor/layers/quantization/utils/configs, or for SGLang to " +
			"sglang/kernels/ops/gemm/configs")
	}
	return o.write(side.Contender, t)
}

// blockTable is the tables of the layers of a model.
type blockTable struct {
	Arch       string `json:"arch"` // the device
	Device     string `json:"device"`
	DeviceName string `json:"device_name"`
	Model      string `json:"model"` // the model, and the kernel family of its products
	Kernel     string `json:"kernel"`
	DType      string `json:"dtype"`       // the type of the weights
	ScaleBlock []int  `json:"scale_block"` // the rows and columns of the weights that have a scale in common
	For        string `json:"for"`         // type, layers and hidden size of the language model, and tp
	TP         int    `json:"tp"`          // the GPUs that divide each layer among them
	Evidence   string `json:"evidence"`    // what the interval rests on
	// the kernels, by layer and in the order of M
	Kernels []blockKernel `json:"kernels"`
	Gain    float64       `json:"gain" unit:"ratio"` // the geometric mean of the gains
}

// blockKernel is what runs in a layer for numbers of rows nearest to M.
type blockKernel struct {
	Layer  string `json:"layer"` // the names of the layers of this size
	N      int    `json:"n"`     // columns, and the depth
	K      int    `json:"k"`
	M      int    `json:"m"` // rows
	Config expert `json:"config"`
	// the predicted time of the product
	Seconds        float64     `json:"seconds" unit:"s"`
	Interval       *[2]float64 `json:"interval"`                 // of 90 %, `null` without one
	DefaultSeconds float64     `json:"default_seconds" unit:"s"` // with the kernel without a table
	Gain           float64     `json:"gain" unit:"ratio"`        // default_seconds ÷ seconds
}

// blockScaled has the types of such a matrix.
var blockScaled = experts{dtype: gemm.FP8, blocks: true}

// newBlockTable chooses the kernels.
func newBlockTable(ctx context.Context, side *tuner, list []hf.Layer) (*blockTable, error) {
	d := side.Describe()
	t := &blockTable{Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, Model: d.Model, Kernel: side.Kernel,
		DType: gemm.FP8.String(), ScaleBlock: blockScaled.scaled()}
	var gains []float64
	at := map[[2]int]int{}
	for _, l := range list {
		if i, is := at[[2]int{l.N, l.K}]; is {
			for j := range tokenSizes {
				t.Kernels[i+j].Layer += " " + l.Name
			}
			continue
		}
		at[[2]int{l.N, l.K}] = len(t.Kernels)
		e := blockScaled
		e.inter, e.hidden = l.N, l.K
		for _, m := range tokenSizes {
			c, err := side.choices(ctx, &e, m, []int{m})
			if err != nil {
				return nil, err
			}
			r, entry, err := c.entry(ctx)
			if err != nil {
				return nil, err
			}
			k := blockKernel{Layer: l.Name, N: l.N, K: l.K, M: m, Config: expertOf(&c.configs[c.best]), Seconds: c.time(c.best),
				DefaultSeconds: c.time(len(c.configs) - 1)}
			k.Gain = k.DefaultSeconds / k.Seconds
			k.Interval, t.Evidence = c.interval(r, entry, k.Seconds)
			t.Kernels, gains = append(t.Kernels, k), append(gains, k.Gain)
		}
	}
	t.Gain = stats.Geomean(gains)
	return t, nil
}

// install writes a file for each layer, under the name of vLLM and under SGLang's.
func (t *blockTable) install(folder string) error {
	if err := makeFolder(folder, folder); err != nil {
		return err
	}
	for all := range slices.Chunk(t.Kernels, len(tokenSizes)) {
		kernels := map[int]expert{}
		for _, k := range all {
			kernels[k.M] = k.Config
		}
		for _, sglang := range []bool{false, true} {
			name := fmt.Sprintf("N=%d,K=%d,device_name=%s,dtype=fp8_w8a8%s.json", all[0].N, all[0].K,
				strings.ReplaceAll(t.DeviceName, " ", "_"), blockShape(t.ScaleBlock, sglang))
			if err := writeKernels(folder, name, kernels); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *blockOptions) write(side *ask.Contender, t *blockTable) error {
	key := show.Key[blockKernel]
	return answer(o.factory, side, t, t.Evidence, func(s *iostreams.Streams) {
		show.Line(s, "table", "%s, %s", t.For, typeOf(t.DType, t.ScaleBlock))
		show.Line(s, "gain", "%s times as fast as without a table (predicted; geometric mean)",
			s.Bold(digits.ThreeDigits(t.Gain)))
	}, t.Kernels, key("layer"), key("n"), key("k"), key("m", "rows"), key("config", "kernel"), key("seconds", "time"),
		show.Text("90 %", func(k *blockKernel) string { return span(k.Interval) }), key("default_seconds", "no table"),
		key("gain"))
}
