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
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/stats"
)

type checkOptions struct {
	factory *session.Factory
	load    string
}

func newCheck(f *session.Factory) *cobra.Command {
	o := &checkOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "check FILE [CONFIG] --arch ARCH",
		Short: "Check a table of vLLM's or SGLang's fused_moe kernel or fp8 matmul",
		Long: "Check a table that somebody tuned for the fused_moe kernel of vLLM or SGLang, or for their fp8 matmul with\n" +
			"scales per block. FILE has the name under which the server looks for it. For experts, CONFIG is the model's\n" +
			"config.json, which has what the name lacks. For each number of tokens: whether the kernel runs on the\n" +
			"device, the kernel that the model would choose, and what the table's kernel is predicted to lose against\n" +
			"it. A loss below zero is a gain that the model does not tell apart from none.",
		Example: "  origami table check 'E=8,N=7168,device_name=NVIDIA_H200.json' config.json --arch h200\n" +
			"  origami table check 'E=8,N=7168,device_name=NVIDIA_H200.json' config.json --arch h100 --json\n" +
			"  origami table check 'N=5120,K=5120,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json' " +
			"--arch h200",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || blockName.MatchString(filepath.Base(args[0])) {
				return session.OneArgument("FILE", "a table of kernels")(cmd, args)
			}
			return session.OneArgument("CONFIG", "the config.json of the model")(cmd, args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return o.runBlocks(cmd.Context(), args[0])
			}
			return o.run(cmd.Context(), args[0], args[1])
		},
	}
	cmd.Flags().SortFlags = false
	addLoad(cmd, &o.load)
	return cmd
}

// named is what the name of a table says.
type named struct {
	experts, inter int
	device, dtype  string
	blocks         bool
	down           bool // SGLang's, for the second product alone
}

// tableName is the form of a name: of vLLM, and of SGLang, which has files for the second product too.
var tableName = regexp.MustCompile(`^E=(\d+),N=(\d+),device_name=([^,]+?)(?:,dtype=([^,]+?))?` +
	`(,block_shape=\[[^]]*\]|,per_channel[^_]*)?(_down)?\.json$`)

// blockName is the form of a name of vLLM and SGLang for a matrix with scales per block.
var blockName = regexp.MustCompile(
	`^N=([1-9]\d{0,8}),K=([1-9]\d{0,8}),device_name=([^,]+),dtype=fp8_w8a8,block_shape=\[128, ?128\]\.json$`)

// readName reads the name of a table.
func readName(name string) (n named, err error) {
	parts := tableName.FindStringSubmatch(filepath.Base(name))
	wrong := func(what, fix string) (named, error) { return n, diag.Inputf("%s", what).At("%s", name).Do("%s", fix) }
	switch {
	case parts == nil:
		return wrong("it has no name of a table of fused_moe, or of fp8 with a scale per 128x128",
			"keep the name by which the server looks for it, as in E=8,N=7168,device_name=NVIDIA_H200.json")
	case parts[4] != "" && parts[4] != "fp8_w8a8",
		parts[5] != "" && (parts[4] == "" || strings.ReplaceAll(parts[5], " ", "") != ",block_shape=[128,128]"):
		return wrong("no model predicts experts of "+strings.Trim(cmp.Or(parts[4], "this type")+parts[5], ","),
			"use a table of bf16, or of fp8 with a scale per tensor or per 128x128")
	}
	n.blocks, n.down = parts[5] != "", parts[6] != ""
	n.device, n.dtype = parts[3], gemm.BF16.String()
	if parts[4] != "" {
		n.dtype = gemm.FP8.String()
	}
	n.experts, err = strconv.Atoi(parts[1])
	if err == nil {
		n.inter, err = strconv.Atoi(parts[2])
	}
	if err != nil || n.experts < 1 || n.inter < 1 {
		return wrong("the sizes in its name are none", "keep the name by which the server looks for it")
	}
	return n, nil
}

// mostTokens and mostLines bound the work that a file can ask for.
const mostTokens, mostLines = 1 << 16, 256

// readTable reads the kernels of a table by the number of tokens. Without warps and stages, Triton takes 4 and 3.
func readTable(ctx context.Context, name string) (map[int]gemm.Config, error) {
	text, err := session.ReadText(ctx, name, limit.Text, "give a table of kernels")
	if err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) (map[int]gemm.Config, error) {
		return nil, diag.Inputf(format, args...).At("%s", name).
			Do(`give a table as {"64": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 128, …}, …}`)
	}
	var lines map[string]json.RawMessage
	if err := json.Unmarshal(text, &lines); err != nil {
		return wrong("it is no table: %v", err)
	}
	delete(lines, "triton_version") // vLLM's tuner notes it, and nothing reads it
	if len(lines) == 0 || len(lines) > mostLines {
		return wrong("it has %d lines, and a table has from 1 to %d", len(lines), mostLines)
	}
	configs := map[int]gemm.Config{}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		tokens, err := strconv.Atoi(key)
		if err != nil || tokens < 1 || tokens > mostTokens {
			return wrong("%q is no number of tokens from 1 to %d", key, mostTokens)
		}
		e := expert{GroupM: 1, NumWarps: 4, NumStages: 3}
		if err := json.Unmarshal(lines[key], &e); err != nil {
			return wrong("%s: it is no kernel: %v", key, err)
		}
		c := gemm.Config{Kernel: expertFamily, BlockM: e.BlockM, BlockN: e.BlockN, BlockK: e.BlockK, GroupM: e.GroupM,
			NumWarps: e.NumWarps, NumStages: e.NumStages, SplitK: 1}
		if err := c.Validate(); err != nil {
			return wrong("%s: %v", key, err)
		}
		configs[tokens] = c
	}
	return configs, nil
}

// tableCheck is what a model says of a table.
type tableCheck struct {
	File string `json:"file"` // its name
	// the device in the file's name, the device that it is checked for, and whether they are the same
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
	Seconds float64 `json:"seconds" unit:"s"` // the predicted time with that, of a layer, its second product, or a matrix
	// the predicted time with the table's kernel ÷ that − 1, and with vLLM's kernel without a table, below 0 by less than
	// what the model tells apart; `null` if it does not run
	Loss        *float64 `json:"loss" unit:"fraction"`
	DefaultLoss *float64 `json:"default_loss" unit:"fraction"`
}

func (o *checkOptions) run(ctx context.Context, name, config string) error {
	n, err := readName(name)
	if err != nil {
		return err
	}
	configs, err := readTable(ctx, name)
	if err != nil {
		return err
	}
	c, err := readConfig(ctx, config)
	if err != nil {
		return err
	}
	c.Quantization = nil // the name of the table has the type
	e, _, err := c.experts(config, 1)
	if err != nil {
		return err
	}
	if e.count != n.experts || e.inter%n.inter != 0 {
		return diag.Inputf("the model has %d experts of %d columns, and the table is for %d of %d", e.count, e.inter,
			n.experts, n.inter).At("%s", config).Do("give the config.json of the table's model")
	}
	e.inter = n.inter
	if e.dtype, err = gemm.ParseDType(n.dtype); err != nil {
		return err
	}
	e.blocks = n.blocks
	l, err := parseLoad(o.load, e.count)
	if err != nil {
		return err
	}
	side, err := openSide(ctx, o.factory, expertFamily)
	if err != nil {
		return err
	}
	t := newTableCheck(name, n.device, side, e)
	t.Load, t.evidence = o.load, e.evidence(side.Describe())
	if err := t.check(ctx, side, e, l, configs, n.down); err != nil {
		return err
	}
	return o.write(side, t)
}

// runBlocks checks a table of a matrix with scales per block.
func (o *checkOptions) runBlocks(ctx context.Context, name string) error {
	if o.load != uniform {
		return diag.Inputf("--load is about experts, and the table has none").At("%s", name).Do("leave it out")
	}
	parts := blockName.FindStringSubmatch(filepath.Base(name))
	n, _ := strconv.Atoi(parts[1]) // digits, as the form says
	k, _ := strconv.Atoi(parts[2])
	configs, err := readTable(ctx, name)
	if err != nil {
		return err
	}
	side, err := openSide(ctx, o.factory, expertFamily)
	if err != nil {
		return err
	}
	t := newTableCheck(name, parts[3], side, &blockScaled)
	t.evidence = blockEvidence()
	for _, m := range slices.Sorted(maps.Keys(configs)) {
		list := blockSpace(m)
		list = slices.Insert(list, len(list)-1, configs[m])
		times, estimates, err := blockTimes(ctx, side.Model, m, n, k, list)
		if err != nil {
			return err
		}
		own := len(list) - 2
		reject := string(estimates[own].Reject)
		if list[own].BlockK > scaleBlock { // the kernel reads one scale per step
			reject, times[own] = "scale_block", math.Inf(1)
		}
		t.add(m, list, fastest(times, list, 0), reject, func(i int) float64 { return times[i] })
	}
	t.sum()
	return o.write(side, t)
}

// newTableCheck returns the answer about a table for a device, without its lines.
func newTableCheck(name, madeFor string, side *ask.Contender, e *experts) *tableCheck {
	d := side.Describe()
	return &tableCheck{File: filepath.Base(name), MadeFor: madeFor, Arch: d.Arch, Device: d.Device,
		DeviceName: d.DeviceName, SameDevice: madeFor == strings.ReplaceAll(d.DeviceName, " ", "_"), Model: d.Model,
		Kernel: side.Kernel, DType: e.dtype.String(), ScaleBlock: e.scaled()}
}

// add appends the line of the last kernel but one of a list. The last one is the server's without a table.
func (t *tableCheck) add(m int, list []gemm.Config, best int, reject string, time func(int) float64) {
	own := len(list) - 2
	line := checkedLine{M: m, Config: expertOf(&list[own]), Reject: reject, Choice: expertOf(&list[best]),
		Seconds: time(best)}
	loss := func(i int) *float64 {
		v := time(i)/line.Seconds - 1
		if math.IsInf(v, 1) { // it does not run
			return nil
		}
		return &v
	}
	line.Loss, line.DefaultLoss = loss(own), loss(own+1)
	t.Lines = append(t.Lines, line)
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

// check compares each kernel with the fastest one. Kernels of the second product alone (down) are compared with those
// of the same BLOCK_SIZE_M, which the table of the first product sets.
func (t *tableCheck) check(
	ctx context.Context, side *ask.Contender, e *experts, l load, configs map[int]gemm.Config, down bool,
) error {
	sizes := slices.Sorted(maps.Keys(configs))
	for i, rows := range l.rows(e.topK, sizes) {
		tokens := sizes[i]
		list := append(e.space(tokens), configs[tokens], e.defaultConfig(tokens))
		times, err := e.estimate(ctx, side.Model, tokens, rows, list)
		if err != nil {
			return err
		}
		own, without := len(list)-2, len(list)-1
		best, time := times.pick(without), func(i int) float64 { return times.layer(i, i) }
		if down {
			time = func(i int) float64 {
				if times.rejects[i] != "" || list[i].BlockM != list[own].BlockM {
					return math.Inf(1)
				}
				return productScale * times.down[i]
			}
			best = fastest(times.down, list, list[own].BlockM)
		}
		if times.rejects[best] != "" {
			return diag.Inputf("no kernel of a layer of %d tokens runs (%s)", tokens, times.rejects[best]).
				At("%s", side.Describe().ID()).Do("choose another device")
		}
		t.add(tokens, list, best, times.rejects[own], time)
	}
	t.sum()
	return nil
}

func (o *checkOptions) write(side *ask.Contender, t *tableCheck) error {
	if !t.SameDevice {
		o.factory.Streams.Warn(fmt.Sprintf("the table was made for %s, and is checked for %s", t.MadeFor, t.DeviceName))
	}
	key := show.Key[checkedLine]
	return answer(o.factory, side, t, t.evidence, func(s *iostreams.Streams) {
		what := typeOf(t.DType, t.ScaleBlock) + ", for " + t.MadeFor
		if t.Load != "" {
			what += ", load " + t.Load
		}
		table.Line(s, "table", "%s", what)
		if t.MedianLoss != nil {
			table.Line(s, "loss", "%s at the median (predicted, against the kernels that the model would choose)",
				s.Bold(digits.Percent(*t.MedianLoss)))
		}
		if t.Refused > 0 {
			table.Line(s, "refused", "%d of %d kernels do not run on this device", t.Refused, len(t.Lines))
		}
	}, t.Lines, key("m", "tokens"), key("config", "kernel"), key("reject", "does not run"), key("choice", "the model's"),
		key("seconds", "time"), key("loss"), key("default_loss", "no table"))
}
