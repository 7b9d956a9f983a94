package tablecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/serving"
)

// sized are sizes of experts in place of a config.json.
type sized struct {
	Experts int `json:"experts" arg:"N" help:"N experts of a layer, in place of a config.json, with the next three"`
	TopK    int `json:"top_k" arg:"N" help:"N experts for each token"`
	Hidden  int `json:"hidden" arg:"N" help:"N columns that enter an expert"`
	Inner   int `json:"inner" arg:"N" help:"N columns between the two products of an expert"`
}

// shared is how GPUs share a model, and the server that runs it.
type shared struct {
	EP     int    `json:"ep" arg:"N" default:"1" help:"N GPUs divide the experts of a layer among them (expert parallel)"`
	SGLang string `json:"sglang" arg:"VERSION" help:"write it for SGLang with this VERSION of Triton, as in 3.5.1"`
}

// server is the name of the server.
func (s *shared) server() string {
	if s.SGLang != "" {
		return sglang
	}
	return vllm
}

const vllm, sglang = serving.VLLM, serving.SGLang

// adopted is what a server needs to find a table.
type adopted struct {
	DeviceName string `json:"device_name" arg:"NAME" help:"the NAME of the device in the names of files"`
	Unread     bool   `json:"unread" help:"write files that the server does not read by default"`
}

// input is what a command is asked for: a model, or sizes, and the file that a server looks for.
type input struct {
	name   string
	config *hf.Config // nil without one
	asked  *named     // nil without a name
}

// asking is the name of a table inside a line of a log.
var asking = regexp.MustCompile(`[EN]=\d+,[NK]=\d+,device_name=[^/]*?\.json`)

// read reads the arguments of a command: a config.json, a file that a server logged that it has not found, or the line
// of the log, or a file with it.
func (o *sized) read(ctx context.Context, args []string) (in input, err error) {
	for _, arg := range args {
		text := []byte(arg) // a line of a log is no file
		if in.name = arg; !asking.MatchString(arg) {
			if text, err = session.ReadText(ctx, arg, limit.Table, "give the config.json of a model"); err != nil {
				return in, err
			}
		}
		if file := asking.Find(text); file != nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			n, err := readName(string(file))
			if err != nil {
				return in, err
			}
			in.asked = &n
		} else if in.config, err = hf.Decode(arg, text); err != nil {
			return in, err
		} else if in.config.Quantization == nil { // modelopt writes it beside the file
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(arg), "hf_quant_config.json"))
			_ = json.Unmarshal(text, &struct{ Quantization **hf.Quantization }{&in.config.Quantization})
		}
	}
	switch {
	case len(args) == 0 && o.Experts == 0:
		return in, diag.Inputf("no model is given").At("CONFIG").Do("give its config.json, or --experts and three sizes")
	case o.Experts > 0 && in.config != nil:
		return in, diag.Inputf("a config.json and --experts are two models").At("%s", in.name).Do("leave one of them out")
	case in.config == nil && (o.Experts > 0 || in.asked != nil && in.asked.experts > 0):
		in.name = cmp.Or(in.name, "--experts")
		in.config = &hf.Config{ModelType: "experts", Experts: o.Experts, TopK: o.TopK, Hidden: o.Hidden,
			ExpertInner: o.Inner, Layers: 1}
		if in.asked != nil { // what one GPU has
			in.config.Experts = cmp.Or(o.Experts, in.asked.experts)
			in.config.ExpertInner = cmp.Or(o.Inner, in.asked.inter)
		}
		if min(in.config.TopK, in.config.Hidden, in.config.ExpertInner) < 1 {
			return in, diag.Inputf("the number of experts for each token, or a size of an expert, is not given").
				At("%s", in.name).Do("add --top-k N --hidden N, and --inner N without a file name; or a config.json")
		}
	}
	return in, nil
}

// weights is the type of the experts' weights: in the name of the file, or of the model.
func (in *input) weights() string {
	if in.asked != nil {
		return in.asked.weights
	}
	return in.config.ExpertWeights()
}

// expertsOf returns the experts of a model's layers on one of the GPUs, and how many layers have experts.
func (o *shared) expertsOf(in *input, tp int, arch string) (*experts, int, error) {
	c := in.config
	wrong := func(format string, args ...any) (*experts, int, error) {
		return nil, 0, diag.Inputf(format, args...).At("%s", in.name).
			Do("give the config.json of a model with experts, or --experts N --top-k N --hidden N --inner N")
	}
	weights, layers := in.weights(), c.ExpertLayers()
	e := &experts{server: o.server(), all: c.Routed(), ep: max(1, o.EP), topK: c.TopK,
		hidden: cmp.Or(c.ExpertHidden, c.Hidden), inter: cmp.Or(c.ExpertInner, c.Intermediate),
		gateless: c.Gateless, dtype: gemm.FP8, weights: weights}
	switch weights {
	case hf.BF16:
		e.dtype = gemm.BF16
	case hf.FP8Block:
		if q := c.Quantization; q != nil && len(q.Block) > 0 && !slices.Equal(q.Block, blockScaled.scaled()) {
			return wrong("scales are for blocks of %d, and the kernel is modelled for %d×%d", q.Block, scaleBlock, scaleBlock)
		}
		e.blocks = true
	case hf.FP8, hf.FP8Static, hf.FP8Channel:
	default:
		return nil, 0, notModelled(o.server(), in.name, weights, arch)
	}
	switch {
	case c.OddExperts() != "":
		return wrong("the experts cannot be told: %s", c.OddExperts())
	case layers == 0:
		return wrong("no layer of %s has experts", cmp.Or(c.ModelType, "the model"))
	case e.all < 2 || e.all > gemm.MaxGroups:
		return wrong("the number of experts is %d", e.all)
	case e.topK < 1 || e.topK > e.all:
		return wrong("num_experts_per_tok is %d", e.topK)
	case min(e.hidden, e.inter, c.Layers) < 1 || max(e.hidden, e.inter, c.Layers) > hf.MostSize:
		return wrong("a size of the layers is missing")
	case tp < 1:
		return nil, 0, hf.NotPositive(tp)
	case o.EP < 0 || e.all%e.ep != 0 || max(tp, e.ep)%min(tp, e.ep) != 0:
		return nil, 0, diag.Inputf("%d GPUs do not divide %d experts on %d GPUs", o.EP, e.all, tp).At("--ep").
			Do("give a number that divides both, or a multiple of --tp")
	}
	// Groups of GPUs that have other experts do not divide an expert.
	parts := max(1, tp/e.ep)
	if n := in.asked; n != nil { // the file says what each GPU has
		e.fused = serving.Fused(sglang, c, 1)
		switch {
		case n.experts == e.all/e.ep:
			e.fused = 0
		case n.experts != e.all+e.fused:
			e.fused = 0
			if n.experts < 1 || e.all%n.experts != 0 || e.ep > 1 {
				return wrong("the model has %d experts of %d columns, and the table is for %d of %d", e.all, e.inter, n.experts,
					n.inter)
			}
			e.ep = e.all / n.experts
		}
		if e.inter%n.inter != 0 {
			return wrong("%d columns of an expert are no multiple of the table's %d", e.inter, n.inter)
		}
		parts = e.inter / n.inter
	} else {
		e.fused = serving.Fused(o.server(), c, e.ep)
	}
	if e.inter%parts != 0 {
		return nil, 0, diag.Inputf("%d GPUs do not divide the %d columns of an expert", parts, e.inter).At("--tp").
			Do("give a number that divides them, as vLLM asks for")
	}
	e.inter /= parts
	if e.blocks && e.inter%scaleBlock != 0 {
		return nil, 0, diag.Inputf("%d columns of an expert on each GPU are not whole blocks of %d", e.inter, scaleBlock).
			At("--tp").Do("give fewer GPUs, as vLLM asks for")
	}
	e.count, e.topK = e.all/e.ep+e.fused, e.topK+e.fused
	return e, layers, nil
}

// notModelled refuses weights that no model predicts, and says what runs them.
func notModelled(server, name, weights, arch string) error {
	b := serving.BackendOf(server, true, weights, arch, 1)
	reads := "which reads no table"
	if b.Reads == "yes" {
		reads = "whose table no model predicts"
	}
	return diag.Inputf("weights of %s: %s %s runs their experts in %s, %s", weights, b.Server, b.Version, b.Runs, reads).
		At("%s", name).Do("use a model in bf16 or fp8; benchmark_moe.py of vLLM measures others")
}

// deviceName is the name of the device in the names of files: what is given, what the server asked for, or the device's
// own.
func (in *input) deviceName(given, own string) string {
	if in.asked != nil && given == "" {
		return in.asked.device
	}
	return strings.ReplaceAll(cmp.Or(given, own), " ", "_")
}

// unread refuses to write tables that no server reads, or that change nothing.
func (o *adopted) unread(s *iostreams.Streams, output string, gain float64, all ...*reading) error {
	reads := func(r *reading) bool { return r.Reads == "yes" }
	if output == "" {
		return nil
	}
	for _, r := range all {
		if len(r.Ships) > 0 {
			s.Warn(fmt.Sprintf("%s ships %d of these tables, which were measured: keep them, or measure both", r.Server,
				len(r.Ships)))
		}
	}
	why := "no kernel is faster than those that the server takes without a table"
	if !slices.ContainsFunc(all, reads) {
		why = all[0].String()
	} else if gain > 1 {
		return nil
	}
	if o.Unread {
		return nil
	}
	return diag.Inputf("nothing is written: %s", why).At("--output %s", output).Do("--unread writes it all the same")
}

// noteUncompared says that the products of a model were not compared with a server's.
func noteUncompared(s *iostreams.Streams, c *hf.Config) {
	if !c.Compared() {
		s.Note(fmt.Sprintf("the products of %s are told by the fields of its config.json, and were not compared with vLLM's",
			c.ModelType))
	}
}

// reading says whether a server reads tables, and which.
type reading struct {
	serving.Backend
	Files []string `json:"files"` // the names for which the server looks
	Ships []string `json:"ships"` // those that it has
	// the predicted time with these ÷ the time with origami's: the geometric mean, `null` without one
	ShippedGain *float64 `json:"shipped_gain" unit:"ratio"`

	ratios []float64
}

// shipped returns the kernels of a table that the server ships, for the numbers of rows that are asked for: those of
// the nearest ones. Without a table, they do not run.
func (r *reading) shipped(name string, sizes []int) (kernels []gemm.Config) {
	r.Files = append(r.Files, name)
	table := serving.Shipped(r.Server, name)
	if len(table) == 0 {
		return slices.Repeat([]gemm.Config{noKernel}, len(sizes))
	}
	r.Ships = append(r.Ships, name)
	rows := slices.Sorted(maps.Keys(table))
	for _, m := range sizes {
		kernels = append(kernels, table[slices.MinFunc(rows, func(a, b int) int { return max(a-m, m-a) - max(b-m, m-b) })])
	}
	return kernels
}

// noKernel runs nowhere: no device has room for its tile.
var noKernel = gemm.Config{BlockM: 4096, BlockN: 4096, BlockK: 1024, NumWarps: 4, NumStages: 2, GroupM: 1, SplitK: 1}

// compare adds the time with a kernel that the server ships. One that does not run is left out.
func (r *reading) compare(theirs, own float64) {
	if ratio := theirs / own; ratio < 1e9 {
		r.ratios = append(r.ratios, ratio)
		mean := stats.Geomean(r.ratios)
		r.ShippedGain = &mean
	}
}

// String says it in a line.
func (r *reading) String() string {
	text := fmt.Sprintf("%s %s: %s", r.Server, r.Version, r.Runs)
	switch {
	case r.Reads != "yes" && r.But == "":
		return text + ", which reads no table"
	case len(r.Files) == 0:
		return text + ", which reads no table; one is read with " + r.But
	case r.Reads != "yes":
		text += fmt.Sprintf(", which reads no table; with %s, Triton reads %s", r.But, r.Files[0])
	default:
		text += ", which reads " + r.Files[0]
	}
	if n := len(r.Files) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	switch {
	case len(r.Ships) == 0:
		return text + " (not shipped)"
	case r.ShippedGain == nil:
		return text + fmt.Sprintf(" (%d shipped)", len(r.Ships))
	}
	return text + fmt.Sprintf(" (%d shipped; origami's is %s times as fast, predicted)", len(r.Ships),
		digits.ThreeDigits(*r.ShippedGain))
}

// fileName is the name by which a server looks for a table: of experts, or without any of one matrix.
func fileName(server string, e *experts, device string) string {
	if e.count > 0 {
		device = serving.DeviceName(server, device)
	}
	name := fmt.Sprintf("N=%d,K=%d,device_name=%s", e.inter, e.hidden, device)
	if e.count > 0 {
		name = fmt.Sprintf("E=%d,N=%d,device_name=%s", e.count, e.inter, device)
	}
	if e.dtype == gemm.FP8 {
		name += ",dtype=fp8_w8a8"
	}
	switch {
	case e.blocks && server == sglang:
		name += fmt.Sprintf(",block_shape=[%d, %d]", scaleBlock, scaleBlock)
	case e.blocks:
		name += fmt.Sprintf(",block_shape=[%d,%d]", scaleBlock, scaleBlock)
	case e.weights == "fp8_channel" && server == sglang:
		name += ",per_channel_quant=True"
	}
	return name + ".json"
}

// down is the name of SGLang's table for the second product.
func down(name string) string { return strings.TrimSuffix(name, ".json") + "_down.json" }
