package tablecmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/serving"
)

type blockOptions struct {
	options
	adopted
}

func newBlocks(f *session.Factory) *cobra.Command {
	o := &blockOptions{options: options{factory: f}}
	cmd := &cobra.Command{
		Use:   "block-fp8 CONFIG --arch ARCH",
		Short: "Write the tables of vLLM's and SGLang's fp8 matmul with scales per block",
		Long: "Write the tables of kernels that vLLM and SGLang take for the linear layers of a model in fp8 with\n" +
			"a scale per 128x128 of a weight, given as its Hugging Face config.json, where they run them in\n" +
			"Triton: for each number of rows the predicted best tile, warps and stages, and the gain over the\n" +
			"kernel without a table. --output writes a file for each layer, under the names of both servers, if one\n" +
			"of them reads it. CONFIG may be the line of a server's log about a file that it has not found.",
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
	in, err := new(sized).read(ctx, []string{name})
	if err != nil {
		return err
	}
	t, side, err := newBlockTable(ctx, o.factory, &in, o.TP, o.DeviceName)
	if err != nil {
		return err
	}
	if err := o.unread(o.factory.Streams, o.Output, t.Gain, &t.Read[0], &t.Read[1]); err != nil {
		return err
	}
	if in.config != nil && in.config.ExpertLayers() > 0 {
		o.factory.Streams.Note("experts run in another kernel: `origami table fused-moe` has their table")
	}
	if o.Output != "" {
		if err := t.install(o.Output); err != nil {
			return err
		}
		o.factory.Streams.Note("copy the files to vllm/model_executor/layers/quantization/utils/configs, or for SGLang to " +
			"sglang/kernels/ops/gemm/configs")
	}
	return o.write(side, t)
}

// blockLayers are the products of a model with scales per block, or the one that a server looks for.
func blockLayers(in *input, tp int) (label string, list []hf.Layer, err error) {
	if n := in.asked; n != nil && n.depth > 0 {
		return fmt.Sprintf("%dx%d", n.inter, n.depth), []hf.Layer{{Name: "linear", N: n.inter, K: n.depth, Count: 1}}, nil
	}
	c := in.config
	if c.Weights() != hf.FP8Block || len(c.Quantization.Block) > 0 &&
		!slices.Equal(c.Quantization.Block, blockScaled.scaled()) {
		return "", nil, diag.Inputf("the weights are %s, and not fp8 with scales per 128x128", c.Weights()).
			At("%s", in.name).Do("give a model whose quantization_config has weight_block_size [128, 128]")
	}
	if err := c.Sized(in.name); err != nil {
		return "", nil, err
	}
	list, err = c.Products(tp)
	return c.Label(tp), slices.DeleteFunc(list, func(l hf.Layer) bool { return l.Name == hf.LMHead }), err // in bf16
}

// blockTable is the tables of the layers of a model.
type blockTable struct {
	kernelTable
	TP int `json:"tp"` // the GPUs that divide each layer among them
	// whether servers read the tables: vLLM and SGLang
	Read []reading `json:"read"`
	// the kernels, by layer and in the order of M
	Kernels []blockKernel `json:"kernels"`
}

// blockKernel is a kernel of a layer.
type blockKernel struct {
	Layer string `json:"layer"` // the names of the layers of this size
	N     int    `json:"n"`     // columns, and the depth
	K     int    `json:"k"`
	Count int    `json:"count"` // how many of them a step computes
	tableKernel
}

// blockScaled has the types of such a matrix.
var blockScaled = experts{dtype: gemm.FP8, blocks: true}

// newBlockTable chooses the kernels.
func newBlockTable(ctx context.Context, f *session.Factory, in *input, tp int, device string) (
	*blockTable, *ask.Contender, error,
) {
	label, list, err := blockLayers(in, tp)
	if err != nil {
		return nil, nil, err
	}
	opened, err := openWeights(ctx, f, hf.FP8Block)
	if err != nil {
		return nil, nil, err
	}
	// A matrix of any size tells the kernels.
	one := experts{inter: scaleBlock, hidden: scaleBlock, dtype: blockScaled.dtype, blocks: true}
	side, err := one.tuner(ctx, opened)
	if err != nil {
		return nil, nil, err
	}
	t := &blockTable{kernelTable: newTable(opened, &one, in, device, label), TP: tp}
	for _, server := range []string{vllm, sglang} {
		t.Read = append(t.Read, reading{Backend: serving.BackendOf(server, false, hf.FP8Block, t.Arch, 1)})
	}
	at := map[[2]int]int{}
	for _, l := range list {
		if i, is := at[[2]int{l.N, l.K}]; is {
			for j := range tokenSizes {
				k := &t.Kernels[i+j]
				k.Layer += " " + l.Name
				k.Count += l.Count
			}
			continue
		}
		at[[2]int{l.N, l.K}] = len(t.Kernels)
		if err := t.choose(ctx, side, &l); err != nil {
			return nil, nil, err
		}
	}
	for i := range t.Kernels {
		k := &t.Kernels[i]
		k.Saved = float64(k.Count) * (k.Gain - 1) * k.Seconds
	}
	return t, opened, nil
}

// choose chooses the kernels of a layer.
func (t *blockTable) choose(ctx context.Context, side *tuner, l *hf.Layer) error {
	e := blockScaled
	e.inter, e.hidden = l.N, l.K
	var theirs [2][]gemm.Config
	for i := range t.Read {
		theirs[i] = t.Read[i].shipped(fileName(t.Read[i].Server, &e, t.DeviceName), tokenSizes)
	}
	for i, m := range tokenSizes {
		c, err := side.choices(ctx, &e, m, []int{m}, theirs[0][i], theirs[1][i])
		if err != nil {
			return err
		}
		one, err := t.add(ctx, c, m, l.Count)
		if err != nil {
			return err
		}
		k := blockKernel{l.Name, l.N, l.K, l.Count, one}
		for s := range theirs {
			t.Read[s].compare(c.time(len(side.space)+s), k.Seconds)
		}
		t.Kernels = append(t.Kernels, k)
	}
	return nil
}

// install writes a file for each layer, under the name of vLLM and under SGLang's.
func (t *blockTable) install(folder string) error {
	if err := makeFolder(folder, folder); err != nil {
		return err
	}
	for i, all := range slices.Collect(slices.Chunk(t.Kernels, len(tokenSizes))) {
		kernels := map[int]expert{}
		for _, k := range all {
			kernels[k.M] = k.Config
		}
		for _, r := range t.Read {
			if err := writeKernels(folder, r.Files[i], kernels); err != nil {
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
		for i := range t.Read {
			show.Line(s, "read", "%s", &t.Read[i])
		}
	}, t.Kernels, key("layer"), key("n"), key("k"), key("m", "rows"), key("config", "kernel"), key("seconds", "time"),
		show.Text("90 %", func(k *blockKernel) string { return span(k.Interval) }), key("default_seconds", "no table"),
		key("gain"), key("saved_seconds", "saved in a step"))
}
