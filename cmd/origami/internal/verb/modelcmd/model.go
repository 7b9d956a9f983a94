// Package modelcmd is `origami model`: what a language model takes per token on GPUs, from its config.json.
package modelcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/forward"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/serving"
)

// options are what the command line says.
type options struct {
	factory *session.Factory
	serving.Layout
	batch, context, fresh int
	advice, curve, passes bool
	price                 []string
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	o := &options{factory: f}
	cmd := &cobra.Command{
		Use:   "model CONFIG --arch ARCH,ARCH…",
		Short: "Predict the time per token of a language model, with its interval",
		Long: "Predict what a language model, given as its Hugging Face config.json, takes per token in a server, when\n" +
			"--batch sequences read a prompt of --context tokens and get --new tokens each, and others take their\n" +
			"places: a step of all sequences, and their share of the prompts that are read meanwhile. Products are\n" +
			"those of the vendor's library; attention, experts, links between the GPUs of a node and what is between\n" +
			"kernels have models of their own. The interval was checked on deployments of other devices. What does\n" +
			"not fit into memory is said. docs/step.md has the sources and the errors.",
		Example: "  origami model config.json --arch h200,b200,mi300x --tp 8 --batch 64 --context 8192\n" +
			"  origami model config.json --arch h100 --tp 4 --weights fp8 --server trtllm --price 2.5 --json",
		Args: session.OneArgument("CONFIG", "the config.json of a model"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.TP, "tp", 1, "`N` GPUs divide each layer among them (tensor parallel)")
	flags.IntVar(&o.EP, "ep", 1, "`N` of these GPUs divide the experts among them (expert parallel)")
	flags.IntVar(&o.DP, "dp", 1, "`N` groups of these GPUs have the attention of their own sequences (data parallel)")
	flags.IntVar(&o.batch, "batch", 1, "`N` sequences at once")
	flags.IntVar(&o.context, "context", 1024, "`N` tokens of a prompt")
	flags.IntVar(&o.fresh, "new", 1024, "`N` tokens that a sequence gets")
	flags.StringVar(&o.Server, "server", "vllm", "`NAME` of the server: "+strings.Join(serving.Servers(), ", "))
	flags.StringVar(&o.Weights, "weights", "", "`TYPE` of the weights, if it is not the model's: "+
		strings.Join(serving.Formats(), ", "))
	flags.StringVar(&o.Cache, "cache", "", "`TYPE` of K and V, bf16 or fp8 (default fp8 for weights of fp8, nvfp4, mxfp4)")
	flags.BoolVar(&o.advice, "advice", false, "add what would be at least 1.05 times as fast: other types, sizes, batches")
	flags.BoolVar(&o.curve, "curve", false, "add the time per token with 1, 2, 4 … 1024 sequences, which the page draws")
	flags.BoolVar(&o.passes, "passes", false,
		"answer a simulator: read steps, a line each, as [[new tokens, tokens before], …]\n"+
			"of their requests, and write a line with the seconds of each step and its interval")
	flags.StringSliceVar(&o.price, "price", nil,
		"dollars per hour and GPU, as `ARCH=NUMBER,...`: adds dollars per million tokens")
	return cmd
}

// answer is what a model takes on each device.
type answer struct {
	Model   string `json:"model"`   // type, layers and hidden size of the language model, and tp
	Server  string `json:"server"`  // the server
	TP      int    `json:"tp"`      // as in the flags
	EP      int    `json:"ep"`      // as in the flags
	DP      int    `json:"dp"`      // as in the flags
	Weights string `json:"weights"` // the type of the weights
	Cache   string `json:"cache"`   // the type of K and V
	Batch   int    `json:"batch"`   // as in the flags
	Context int    `json:"context"` // as in the flags
	New     int    `json:"new"`     // as in the flags
	// one per `--arch`, in the given order; one that failed has `named` and `error` only
	Devices []device `json:"devices"`
}

// device is a device's Step, or why there is none.
type device struct {
	// the device, as in `--arch`
	Named string `json:"named"`
	*ask.Step
	// whether all sequences fit into memory
	Fits bool `json:"fits"`
	// why there is no answer
	Error *ask.Error `json:"error,omitempty"`
}

func (o *options) run(ctx context.Context, name string) error {
	text, err := session.ReadText(ctx, name, limit.Text, "give the config.json of a model")
	if err != nil {
		return err
	}
	c, err := hf.Decode(name, text)
	if err != nil {
		return err
	}
	plan, err := serving.New(name, c, o.Layout)
	if err != nil {
		return err
	}
	f := o.factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return err
	}
	var search question.Search
	search.Reach(targets, false)
	sides := make([]ask.Contender, len(targets))
	for i := range targets {
		if sides[i], err = f.OpenSide(ctx, &targets[i], &search, false); err != nil {
			return err
		}
		tdp, _ := hw.Set(sides[i].Describe().Params).Lookup("tdp")
		sides[i].Watts = tdp.Value
	}
	if err := comparecmd.Assign("--price", o.price, sides, func(s *ask.Contender, perHour float64) {
		s.Dollars = perHour / 3600
	}); err != nil {
		return err
	}
	if o.passes {
		if len(sides) > 1 {
			return diag.Inputf("%d devices are asked for, and steps are of one", len(sides)).At("--arch").Do("give one")
		}
		return o.simulate(ctx, ask.StepsOn(&sides[0]), plan)
	}
	out := &answer{Model: c.Label(o.TP), Server: o.Server, TP: o.TP, EP: plan.EP, DP: plan.DP, Weights: plan.Weights,
		Cache: plan.Cache, Batch: o.batch, Context: o.context, New: o.fresh}
	var failed error
	for i := range sides {
		one := device{Named: sides[i].Called()}
		q := ask.StepQuestion{Plan: plan, Batch: o.batch, Context: o.context, New: o.fresh}
		steps := ask.StepsOn(&sides[i])
		answer := steps.Of
		if o.advice {
			answer = steps.Advised
		}
		if one.Step, err = answer(ctx, q); err == nil && o.curve {
			err = steps.Curve(ctx, one.Step, q)
		}
		if err != nil {
			if len(sides) == 1 {
				return err
			}
			what := ask.ErrorOf(f.Streams.Hinted(err))
			one.Step, one.Error, failed = nil, &what, err
		} else {
			one.Fits = one.Memory.Fits(o.batch)
		}
		out.Devices = append(out.Devices, one)
	}
	if err := o.write(out); err != nil {
		return err
	}
	return failed
}

// simulate answers the steps of a simulator until its input ends. A step without requests takes no time.
func (o *options) simulate(ctx context.Context, steps *ask.Steps, plan forward.Plan) error {
	s := o.factory.Streams
	lines := bufio.NewScanner(s.In)
	lines.Buffer(nil, int(limit.Text))
	for n := 1; lines.Scan(); n++ {
		var requests [][2]int
		if err := json.Unmarshal(lines.Bytes(), &requests); err != nil {
			return diag.Inputf("line %d is no step: %v", n, err).At("standard input").
				Do("write [[new tokens, tokens before], …] on a line")
		}
		var out struct {
			Seconds  ask.Number    `json:"seconds"`
			Interval [2]ask.Number `json:"interval_seconds"`
		}
		if pass := forward.PassOf(requests); pass.Tokens() > 0 {
			var err error
			if out.Seconds, out.Interval, err = steps.Pass(ctx, plan, pass); err != nil {
				return err
			}
		}
		if err := json.NewEncoder(s.Writer()).Encode(out); err != nil {
			return err
		}
		if err := s.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (o *options) write(a *answer) error {
	s, f := o.factory.Streams, o.factory.Format()
	key, text := show.Key[device], show.Text[device]
	part := func(name string) show.Column[device] {
		return text(name, func(d *device) string {
			if d.Step == nil {
				return ""
			}
			for _, p := range d.Parts {
				if p.Name == name {
					return digits.Percent(float64(p.Share))
				}
			}
			return ""
		})
	}
	err := show.Answer(s, f, a, func() {
		s.Printf("model    %s, weights in %s, K and V in %s, in %s\n", a.Model, a.Weights, a.Cache, a.Server)
		s.Printf("traffic  %d sequences, %d tokens of prompt and %d new ones each\n\n", a.Batch, a.Context, a.New)
	}, a.Devices, key("named", "device"),
		text("time per token", func(d *device) string {
			if d.Error != nil {
				return d.Error.What
			}
			return unit.Seconds(d.Seconds).String()
		}),
		text("interval", func(d *device) string {
			if d.Error != nil {
				return ""
			}
			return unit.Seconds(d.Interval[0]).String() + " – " + unit.Seconds(d.Interval[1]).String()
		}),
		key("tokens_per_second", "tokens/s"), part(forward.Products), part(forward.Attention), part(forward.Experts),
		part(forward.Links), part(forward.Between), part(forward.Host),
		part("prompts"),
		key("prefill_seconds", "a prompt"),
		text("memory", func(d *device) string {
			if d.Error != nil {
				return ""
			}
			m := &d.Memory
			switch {
			case m.Capacity == nil:
				return unit.SI(float64(m.Weights+m.Cache), "B")
			case *m.Sequences == 0:
				return fmt.Sprintf("weights of %s do not fit %s", unit.SI(float64(m.Weights), "B"),
					unit.SI(float64(*m.Capacity), "B"))
			case !d.Fits:
				return fmt.Sprintf("%d sequences fit", *m.Sequences)
			}
			return unit.SI(float64(m.Weights+m.Cache), "B") + " of " + unit.SI(float64(*m.Capacity), "B")
		}),
		key("dollars_per_million_tokens", "$/M tokens").If(len(o.price) > 0),
		text("kWh/M tokens", func(d *device) string {
			if d.Error != nil || d.Joules == nil {
				return ""
			}
			return digits.ThreeDigits(float64(*d.Joules) / 3.6e6)
		}))
	if err != nil || f != show.Table {
		return err
	}
	answered := slices.DeleteFunc(slices.Clone(a.Devices), func(d device) bool { return d.Step == nil })
	for i := range answered {
		d := &answered[i]
		for _, one := range d.Advice {
			s.Printf("%s  %s: %s per token, %s of the tokens per second and GPU\n", d.Named, one.Change,
				unit.Seconds(one.Seconds), digits.ThreeDigits(float64(one.Rate)))
		}
	}
	var said []string
	for i := range answered {
		for _, one := range answered[i].Unchecked {
			if note := "unchecked: " + one; !slices.Contains(said, note) {
				s.Note(note)
				said = append(said, note)
			}
		}
	}
	return nil
}
