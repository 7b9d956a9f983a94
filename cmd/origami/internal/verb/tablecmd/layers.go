package tablecmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
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

// tableStep is such layers in a step of M tokens.
type tableStep struct {
	Layer string  `json:"layer"` // as in layers
	M     int     `json:"m"`     // the tokens
	Gain  float64 `json:"gain" unit:"ratio"`
	Saved float64 `json:"saved_seconds" unit:"s"` // what all of them take less than without the table
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
	side, err := openSide(ctx, f, "")
	if err != nil {
		return err
	}
	d := side.Describe()
	out := &layerTables{Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, For: in.config.Label(o.TP), TP: o.TP,
		EP: max(1, o.EP)}
	if in.config.ExpertLayers() > 0 {
		o.experts(ctx, &in, out)
	}
	o.linear(ctx, &in, out)
	noteUncompared(f.Streams, in.config)
	return o.write(out)
}

// experts says whether the experts read a table.
func (o *layersOptions) experts(ctx context.Context, in *input, out *layerTables) {
	kind := layerKind{Layer: "experts", Weights: in.weights()}
	kind.Backend = serving.BackendOf(o.server(), true, kind.Weights, out.Arch, o.EP)
	t, _, err := o.table(ctx, o.factory, in, o.TP, uniform, "")
	if err != nil {
		kind.Why = err.Error()
		if e, _, err := o.expertsOf(in, o.TP, out.Arch); err == nil {
			kind.shipped(fileName(o.server(), e, in.deviceName("", out.DeviceName)), tokenSizes)
		}
	} else {
		kind.reading, kind.Gain = t.Read, &t.Gain
		for i := range t.Kernels {
			k := &t.Kernels[i]
			out.Steps = append(out.Steps, tableStep{kind.Layer, k.M, k.Gain, k.Saved})
		}
	}
	out.add(&kind)
}

// linear says whether the other layers read tables.
func (o *layersOptions) linear(ctx context.Context, in *input, out *layerTables) {
	kind := layerKind{Layer: "linear", Weights: in.config.Weights()}
	if kind.Weights == "mxfp4" {
		kind.Weights = hf.BF16 // gpt-oss has its experts alone in it
	}
	kind.Backend = serving.BackendOf(o.server(), false, kind.Weights, out.Arch, 1)
	if kind.Weights != hf.FP8Block {
		out.add(&kind)
	} else if t, _, err := newBlockTable(ctx, o.factory, in, o.TP, ""); err != nil {
		kind.Why = err.Error()
		out.add(&kind)
	} else {
		kind.reading, kind.Gain = t.Read[slices.Index([]string{vllm, sglang}, o.server())], &t.Gain
		for i, m := range tokenSizes {
			var saved, seconds float64
			for at := i; at < len(t.Kernels); at += len(tokenSizes) {
				k := &t.Kernels[at]
				saved, seconds = saved+k.Saved, seconds+float64(k.Count)*k.Seconds
			}
			out.Steps = append(out.Steps, tableStep{kind.Layer, m, 1 + saved/seconds, saved})
		}
		out.add(&kind)
	}
}

// add adds a kind of layers. What a table that is not read would be worth is left out.
func (t *layerTables) add(kind *layerKind) {
	t.Layers = append(t.Layers, *kind)
	t.Steps = slices.DeleteFunc(t.Steps, func(s tableStep) bool { return s.Layer == kind.Layer && kind.Reads != "yes" })
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
	}, t.Steps, step("layer"), step("m", "tokens"), step("gain"), step("saved_seconds", "saved in a step"))
}
