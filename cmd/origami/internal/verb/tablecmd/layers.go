package tablecmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/serving"
)

type layersOptions struct {
	factory *session.Factory
	TP      int `json:"tp" arg:"N" default:"1" help:"N GPUs divide each layer among them (tensor parallel)"`
	shared
}

func newLayers(f *session.Factory) *cobra.Command {
	o := &layersOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "layers CONFIG --arch ARCH",
		Short: "Say which layers of a model read a table, and what a table is worth",
		Long: "Say for the layers of a model, given as its Hugging Face config.json, in which kernels a server runs\n" +
			"them by default on a device, whether these read a table and for which file the server looks, whether it\n" +
			"ships that file and how origami's compares with it, and what origami's saves in a step of M tokens. All\n" +
			"times are predicted. Nothing is written.",
		Example: "  origami table layers config.json --arch h100 --tp 8\n" +
			"  origami table layers config.json --arch h200 --tp 8 --ep 8 --sglang 3.7.1 --json",
		Args: session.OneArgument("CONFIG", "the config.json of a model"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	session.Register(cmd.Flags(), o)
	return cmd
}

// layerTables is which layers read tables.
type layerTables struct {
	Arch       string `json:"arch"` // the device
	Device     string `json:"device"`
	DeviceName string `json:"device_name"`
	For        string `json:"for"` // type, layers and hidden size of the language model, and tp
	TP         int    `json:"tp"`  // the GPUs that divide each layer among them
	EP         int    `json:"ep"`  // the GPUs that divide the experts among them
	// the experts and the other layers
	Layers []layerKind `json:"layers"`
	// what the tables that are read are worth, by the tokens of a step
	Steps []tableStep `json:"steps"`
}

// layerKind is layers that run in one kernel.
type layerKind struct {
	Layer   string `json:"layer"`   // experts, or linear
	Weights string `json:"weights"` // the type of their weights
	reading
	Gain *float64 `json:"gain" unit:"ratio"` // the geometric mean of the gains, `null` without a model
	Why  string   `json:"unknown,omitempty"` // why no gain is predicted
}

// tableStep is a step of M tokens.
type tableStep struct {
	M int `json:"m"` // the tokens
	// the time of the layers without a table ÷ with it, and what they take less, for experts and for the others; `null`
	// where no table is read
	Experts      *float64 `json:"experts_gain" unit:"ratio"`
	ExpertsSaved *float64 `json:"experts_saved_seconds" unit:"s"`
	Linear       *float64 `json:"linear_gain" unit:"ratio"`
	LinearSaved  *float64 `json:"linear_saved_seconds" unit:"s"`
}

func (o *layersOptions) run(ctx context.Context, name string) error {
	in, err := new(sized).read(ctx, []string{name})
	if err != nil {
		return err
	}
	if in.asked != nil {
		return diag.Inputf("it is the name of one file").At("%s", name).Do("give the config.json of a model")
	}
	f := o.factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return err
	}
	if len(targets) != 1 {
		return diag.Inputf("%d architectures are given, and a table is for one", len(targets)).At("--arch").Do("leave one")
	}
	side, err := f.OpenSide(ctx, &targets[0], &question.Search{}, false)
	if err != nil {
		return err
	}
	d := side.Describe()
	out := &layerTables{Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, For: in.config.Label(o.TP), TP: o.TP,
		EP: max(1, o.EP), Steps: make([]tableStep, len(tokenSizes))}
	for i, m := range tokenSizes {
		out.Steps[i].M = m
	}
	if in.config.ExpertLayers() > 0 {
		out.Layers = append(out.Layers, o.experts(ctx, &in, d, out.Steps))
	}
	out.Layers = append(out.Layers, o.linear(ctx, &in, d, out.Steps))
	noteUncompared(f.Streams, in.config)
	if out.Steps[0].Experts == nil && out.Steps[0].Linear == nil {
		out.Steps = nil
	}
	return o.write(out)
}

// experts says whether the experts read a table.
func (o *layersOptions) experts(ctx context.Context, in *input, d *arch.Description, steps []tableStep) layerKind {
	kind := layerKind{Layer: serving.ExpertLayer, Weights: in.weights()}
	kind.Backend = serving.BackendOf(o.server(), serving.ExpertLayer, kind.Weights, d.Arch, o.EP)
	e, _, err := o.expertsOf(in, o.TP, d.Arch)
	if err != nil {
		kind.Why = err.Error()
		return kind
	}
	t, _, err := o.table(ctx, o.factory, in, o.TP, uniform, "")
	if err != nil {
		kind.Why = err.Error()
		kind.shipped(fileName(o.server(), e, in.deviceName("", d.DeviceName)), tokenSizes)
		return kind
	}
	if kind.reading, kind.Gain = t.Read, &t.Gain; kind.Reads != "yes" {
		return kind
	}
	for i := range steps {
		steps[i].Experts, steps[i].ExpertsSaved = &t.Kernels[i].Gain, &t.Kernels[i].Saved
	}
	return kind
}

// linear says whether the other layers read tables.
func (o *layersOptions) linear(ctx context.Context, in *input, d *arch.Description, steps []tableStep) layerKind {
	kind := layerKind{Layer: serving.LinearLayer, Weights: in.config.Weights()}
	if kind.Weights == "mxfp4" {
		kind.Weights = hf.BF16 // gpt-oss has its experts alone in it
	}
	kind.Backend = serving.BackendOf(o.server(), serving.LinearLayer, kind.Weights, d.Arch, 1)
	if kind.Weights != hf.FP8Block {
		return kind
	}
	t, _, err := newBlockTable(ctx, o.factory, in, o.TP, "")
	if err != nil {
		kind.Why = err.Error()
		return kind
	}
	kind.reading, kind.Gain = t.Read[slices.Index([]string{vllm, sglang}, o.server())], &t.Gain
	if kind.Reads != "yes" {
		return kind
	}
	for i := range steps {
		var saved, seconds float64
		for at := i; at < len(t.Kernels); at += len(tokenSizes) {
			k := &t.Kernels[at]
			saved += k.Saved
			seconds += float64(k.Count) * k.Seconds
		}
		gain := 1 + saved/seconds
		steps[i].Linear, steps[i].LinearSaved = &gain, &saved
	}
	return kind
}

func (o *layersOptions) write(t *layerTables) error {
	s, step := o.factory.Streams, show.Key[tableStep]
	return show.Answer(s, o.factory.Format(), t, func() {
		show.Line(s, "device", "%s (%s@%s)", t.DeviceName, t.Arch, t.Device)
		show.Line(s, "model", "%s, tp %d, ep %d", t.For, t.TP, t.EP)
		for i := range t.Layers {
			l := &t.Layers[i]
			show.Line(s, l.Layer, "%s", &l.reading)
			if l.Why != "" {
				show.Line(s, "", "no gain is predicted: %s", l.Why)
			}
		}
	}, t.Steps, step("m", "tokens"), step("experts_gain", "experts"), step("experts_saved_seconds", "saved in a step"),
		step("linear_gain", "linear"), step("linear_saved_seconds", "saved in a step"))
}
