package tablecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
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
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/serving"
)

type checkOptions struct {
	factory *session.Factory
	loaded
}

func newCheck(f *session.Factory) *cobra.Command {
	o := &checkOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "check FILE [CONFIG] --arch ARCH",
		Short: "Check a table of vLLM's or SGLang's fused_moe kernel or fp8 matmul",
		Long: "Check a table that somebody tuned for the fused_moe kernel of vLLM or SGLang, or for their fp8\n" +
			"matmul with scales per block. FILE has the name under which the server looks for it. For experts,\n" +
			"CONFIG is the model's config.json. For each number of tokens: whether the kernel runs on the\n" +
			"device, the kernel that the model would choose, and the predicted loss against it. A loss below\n" +
			"zero is a gain that the model does not tell apart from none.",
		Example: "  origami table check 'E=8,N=7168,device_name=NVIDIA_H200.json' config.json --arch h200\n" +
			"  origami table check 'E=8,N=7168,device_name=NVIDIA_H200.json' config.json --arch h100 --json\n" +
			"  origami table check 'N=5120,K=5120,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json' " +
			"--arch h200",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || strings.HasPrefix(filepath.Base(args[0]), "N=") {
				return session.OneArgument("FILE", "a table of kernels")(cmd, args)
			}
			return session.OneArgument("CONFIG", "the config.json of the model")(cmd, args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], args[1:])
		},
	}
	session.Register(cmd.Flags(), o)
	return cmd
}

// named is what the name of a table says.
type named struct {
	experts, inter, depth int // without experts, N and K of a matrix
	device                string
	weights               string // as in hf.Config.Weights
	down                  bool   // SGLang's, for the second product alone
}

// tableName is the form of a name: of vLLM, and of SGLang, which has files for the second product too.
var tableName = regexp.MustCompile(`^(?:E=(\d+),N=(\d+)|N=(\d+),K=(\d+)),device_name=([^,]+?)(?:,dtype=([^,]+?))?` +
	`(?:,(block_shape=\[[^]]*\]|per_channel_quant=True))?(_down)?\.json$`)

// nameTypes are the types of weights by what a name says of them.
var nameTypes = map[string]string{"": hf.BF16, "fp8_w8a8": hf.FP8, "fp8_w8a8,block_shape=[128,128]": hf.FP8Block,
	"fp8_w8a8,per_channel_quant=True": hf.FP8Channel}

// readName reads the name of a table.
func readName(name string) (n named, err error) {
	wrong := func(what, fix string) (named, error) { return n, diag.Inputf("%s", what).At("%s", name).Do("%s", fix) }
	parts := tableName.FindStringSubmatch(filepath.Base(name))
	if parts == nil {
		return wrong("it has no name of a table of fused_moe, or of fp8 with a scale per 128x128",
			"keep the name by which the server looks for it, as in E=8,N=7168,device_name=NVIDIA_H200.json")
	}
	said := strings.Trim(parts[6]+","+strings.ReplaceAll(parts[7], " ", ""), ",")
	number := func(i int) int {
		v, _ := strconv.Atoi(cmp.Or(parts[i], parts[i+2])) // 0 is refused
		return v
	}
	n = named{inter: number(2), device: parts[5], weights: nameTypes[said], down: parts[8] != ""}
	what := "a matrix"
	if n.experts, n.depth = number(1), 0; parts[1] == "" {
		n.experts, n.inter, n.depth = 0, number(1), number(2)
	} else {
		what = "experts"
	}
	switch {
	case n.weights == "" || what == "a matrix" && n.weights != hf.FP8Block:
		return wrong(fmt.Sprintf("no model predicts %s of %s", what, cmp.Or(said, "this type")),
			"use a table of experts in bf16 or fp8, or of a matrix in fp8 with a scale per 128x128")
	case n.inter < 1 || n.experts+n.depth < 1 || max(n.experts, n.inter, n.depth) > hf.MostSize:
		return wrong("the sizes in its name are none", "keep the name by which the server looks for it")
	}
	return n, nil
}

// mostTokens and mostLines bound the work that a file can ask for.
const mostTokens, mostLines = 1 << 18, 256

// readTable reads the kernels of a table by the number of tokens, and which keys no model has. Without warps and
// stages, Triton takes 4 and serving.Stages.
func readTable(ctx context.Context, name string) (map[int]gemm.Config, []string, error) {
	text, err := session.ReadText(ctx, name, limit.Text, "give a table of kernels")
	if err != nil {
		return nil, nil, err
	}
	wrong := func(format string, args ...any) (map[int]gemm.Config, []string, error) {
		return nil, nil, diag.Inputf(format, args...).At("%s", name).
			Do(`give a table as {"64": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 128, …}, …}`)
	}
	var lines map[string]json.RawMessage
	if err := strictjson.Foreign(text, &lines); err != nil {
		return wrong("it is no table: %v", err)
	}
	delete(lines, "triton_version") // vLLM's tuner notes it, and nothing reads it
	if len(lines) == 0 || len(lines) > mostLines {
		return wrong("it has %d lines, and a table has from 1 to %d", len(lines), mostLines)
	}
	configs, unmodelled := map[int]gemm.Config{}, map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		tokens, err := strconv.Atoi(key)
		if err != nil || tokens < 1 || tokens > mostTokens {
			return wrong("%q is no number of tokens from 1 to %d", key, mostTokens)
		}
		e := struct {
			expert
			Split int  `json:"SPLIT_K"`
			TMA   bool `json:"USE_TMA"`
			Swap  bool `json:"SWAP_AB"`
		}{expert: expert{GroupM: 1, NumWarps: 4, NumStages: serving.Stages(name)}, Split: 1}
		if err := strictjson.Unmarshal(lines[key], &e); err != nil {
			return wrong("%s: it is no kernel: %v", key, err)
		}
		c := gemm.Config{BlockM: e.BlockM, BlockN: e.BlockN, BlockK: e.BlockK, GroupM: e.GroupM,
			NumWarps: e.NumWarps, NumStages: e.NumStages, SplitK: 1}
		for name, has := range map[string]bool{"SPLIT_K": e.Split != 1, "USE_TMA": e.TMA, "SWAP_AB": e.Swap} {
			if has {
				unmodelled[name] = true
			}
		}
		if err := c.Validate(); err != nil {
			return wrong("%s: %v", key, err)
		}
		if c.Axes, err = e.axes(); err != nil {
			return wrong("%s: %v", key, err)
		}
		configs[tokens] = c
	}
	return configs, slices.Sorted(maps.Keys(unmodelled)), nil
}

// tableCheck is what a model says of a table.
type tableCheck struct {
	File string `json:"file"` // its name
	// the device in the file's name, the device of the check, whether they are the same
	MadeFor    string `json:"made_for"`
	Arch       string `json:"arch"`
	Device     string `json:"device"`
	DeviceName string `json:"device_name"`
	SameDevice bool   `json:"same_device"`
	Model      string `json:"model"` // the model, and the kernel family of its products
	Kernel     string `json:"kernel"`
	DType      string `json:"dtype"` // the type of the weights
	// the rows and columns of the weights that have a scale in common, absent for one per tensor
	ScaleBlock []int  `json:"scale_block,omitempty"`
	Load       string `json:"load,omitempty"` // how popular the experts are, absent without experts
	// keys of the table that no model has: times are without them
	Unmodelled []string `json:"unmodelled,omitempty"`
	// the kernels, in the order of M
	Lines      []checkedLine `json:"lines"`
	MedianLoss *float64      `json:"median_loss"` // of the kernels that run, `null` if none does
	Refused    int           `json:"refused"`     // kernels that do not run
	evidence   string
}

// checkedLine is a kernel of the table.
type checkedLine struct {
	M       int     `json:"m"` // tokens
	Config  expert  `json:"config"`
	Reject  string  `json:"reject,omitempty"` // why it does not run
	Choice  expert  `json:"choice"`           // the kernel that the model would choose
	Seconds float64 `json:"seconds" unit:"s"` // the predicted time with it, of a layer, its second product, or a matrix
	// the predicted time with the table's kernel ÷ that − 1, and with vLLM's kernel without a table
	Loss        *float64 `json:"loss" unit:"fraction"`
	DefaultLoss *float64 `json:"default_loss" unit:"fraction"`
}

func (o *checkOptions) run(ctx context.Context, name string, config []string) error {
	n, err := readName(name)
	if err != nil {
		return err
	}
	configs, unmodelled, err := readTable(ctx, name)
	if err != nil {
		return err
	}
	side, err := openWeights(ctx, o.factory, n.weights)
	if err != nil {
		return err
	}
	e, l := &experts{inter: n.inter, hidden: n.depth, dtype: gemm.FP8, blocks: true}, load(nil)
	switch {
	case len(config) > 0:
		in, err := new(sized).read(ctx, config)
		if err != nil {
			return err
		}
		in.asked = &n
		if e, _, err = new(shared).expertsOf(&in, 1, side.Describe().Arch); err != nil {
			return err
		}
		if l, err = parseLoad(o.Load, e.all); err != nil {
			return err
		}
	case o.Load != uniform:
		return diag.Inputf("--load is about experts, and the table has none").At("%s", name).Do("leave it out")
	default:
		o.Load = ""
	}
	tuner, err := e.tuner(ctx, side)
	if err != nil {
		return err
	}
	tuner.kept = 1
	d := side.Describe()
	axes := d.Axes(side.Kernel)
	for m, c := range configs {
		for name := range c.Axes.All() {
			if _, err := gemm.FindAxis(axes, name); err != nil {
				unmodelled = append(unmodelled, name)
				c.Axes = gemm.Axes{}
			}
		}
		if err := c.Validate(axes...); err != nil {
			return diag.Inputf("%d: %v", m, err).At("%s", name).Do("give a table as vLLM's tuner writes it")
		}
		configs[m] = c
	}
	slices.Sort(unmodelled)
	unmodelled = slices.Compact(unmodelled)
	t := &tableCheck{File: filepath.Base(name), MadeFor: n.device, Arch: d.Arch, Device: d.Device,
		DeviceName: d.DeviceName, SameDevice: n.device == strings.ReplaceAll(d.DeviceName, " ", "_"), Model: d.Model,
		Kernel: side.Kernel, DType: e.dtype.String(), ScaleBlock: e.scaled(), Load: o.Load, Unmodelled: unmodelled}
	sizes := slices.Sorted(maps.Keys(configs))
	for i, rows := range l.rows(e, sizes) {
		c, err := tuner.choices(ctx, e, sizes[i], rows, configs[sizes[i]])
		if err != nil {
			return err
		}
		r, entry, err := c.entry(ctx)
		if err != nil {
			return err
		}
		_, t.evidence = c.interval(r, entry, c.time(c.best))
		if err := t.add(sizes[i], c, n.down); err != nil {
			return err
		}
	}
	t.sum()
	return o.write(side, t)
}

// add appends the line of the last kernel but one of a list. Kernels of the second product alone (down) are compared
// with kernels of the same BLOCK_SIZE_M, which the table of the first product sets.
func (t *tableCheck) add(m int, c *choices, down bool) error {
	own, best, time := len(c.configs)-2, c.best, c.time
	if down {
		time = func(i int) float64 {
			if c.rejects[i] != "" || c.configs[i].BlockM != c.configs[own].BlockM {
				return math.Inf(1)
			}
			return c.times[1][i]
		}
		best = c.fastest(1, c.configs[own].BlockM)
	}
	line := checkedLine{M: m, Config: expertOf(&c.configs[own]), Reject: c.rejects[own],
		Choice: expertOf(&c.configs[best]), Seconds: time(best)}
	loss := func(i int) *float64 {
		v := time(i)/line.Seconds - 1
		if math.IsInf(v, 1) { // it does not run
			return nil
		}
		return &v
	}
	line.Loss, line.DefaultLoss = loss(own), loss(own+1)
	t.Lines = append(t.Lines, line)
	return c.runs(best)
}

// sum counts what the lines have in common.
func (t *tableCheck) sum() {
	var losses []float64
	for _, line := range t.Lines {
		if line.Loss == nil {
			t.Refused++
		} else {
			losses = append(losses, *line.Loss)
		}
	}
	if len(losses) > 0 {
		median := stats.Median(losses)
		t.MedianLoss = &median
	}
}

func (o *checkOptions) write(side *ask.Contender, t *tableCheck) error {
	if !t.SameDevice {
		o.factory.Streams.Warn(fmt.Sprintf("the table was made for %s, and is checked for %s", t.MadeFor, t.DeviceName))
	}
	if len(t.Unmodelled) > 0 {
		o.factory.Streams.Warn("no model has " + strings.Join(t.Unmodelled, ", ") + ": times are without it")
	}
	key := show.Key[checkedLine]
	return answer(o.factory, side, t, t.evidence, func(s *iostreams.Streams) {
		what := typeOf(t.DType, t.ScaleBlock) + ", for " + t.MadeFor
		if t.Load != "" {
			what += ", load " + t.Load
		}
		show.Line(s, "table", "%s", what)
		if t.MedianLoss != nil {
			show.Line(s, "loss", "%s at the median (predicted, against the kernels that the model would choose)",
				s.Bold(digits.Percent(*t.MedianLoss)))
		}
		if t.Refused > 0 {
			show.Line(s, "refused", "%d of %d kernels do not run on this device", t.Refused, len(t.Lines))
		}
	}, t.Lines, key("m", "tokens"), key("config", "kernel"), key("reject", "does not run"), key("choice", "the model's"),
		key("seconds", "time"), key("loss"), key("default_loss", "no table"))
}
