package selectcmd

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/fakearch"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/gemm"
)

// Flags become options, without anything being run.
func TestFlags(t *testing.T) {
	var got *Options
	a := &session.Factory{Streams: iostreams.Plain(strings.NewReader(""), nil, nil),
		Getenv: func(string) string { return "" }}
	root := &cobra.Command{
		Use: "origami", PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.Configure(cmd) },
	}
	config.Register(root.PersistentFlags())
	root.AddCommand(New(a, func(_ context.Context, o *Options) error { got = o; return nil }))
	root.SetArgs(strings.Fields("--arch toy1 --device big select -m 1 -n 2 --k 3 --batch 4 --trans-a --dtype bf16 " +
		"--kernel fancy --option a=b --option c=d,e --json"))
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got.Factory.PluginOptions, " ") != "a=b c=d,e" {
		t.Errorf("options %q", got.Factory.PluginOptions)
	}
	problem, err := got.Query.One(a.Settings.DType)
	want := gemm.Problem{M: 1, N: 2, K: 3, Batch: 4, AMajor: gemm.MajorM, BMajor: gemm.MajorN, DType: gemm.BF16}
	if err != nil || problem != want {
		t.Errorf("problem %+v, %v", problem, err)
	}
	if s := a.Settings; s.Kernel != "fancy" || s.Format != "json" || s.Arch[0] != "toy1" || s.Device != "big" {
		t.Errorf("settings %+v", s)
	}
}

// A terminal gets the card without being asked; a pipe gets TSV.
func TestFormatFollowsTheStream(t *testing.T) {
	for _, tc := range []struct {
		terminal, colour bool
		want             string
	}{
		{true, false, "pick        64x64x64 "},
		{true, true, "pick        \x1b[1m\x1b[32m64x64x64 "},
		{false, false, "256\t256\t256\t1\t0\t0\tfp16\t64\t64\t64\t"},
	} {
		var out bytes.Buffer
		streams := iostreams.Plain(strings.NewReader(""), &out, nil)
		streams.Terminal, streams.Colour = tc.terminal, tc.colour
		o := &Options{Factory: &session.Factory{
			Streams: streams,
			Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
				return session.InProcess(fakearch.Providers()), nil
			},
			Settings: config.Settings{Arch: []string{"toy1"}, DType: "fp16"},
		}}
		for flag, value := range map[*session.Size]string{&o.Query.M: "256", &o.Query.N: "256", &o.Query.K: "256",
			&o.Query.Batch: "1"} {
			if err := flag.Set(value); err != nil {
				t.Fatal(err)
			}
		}
		if err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := streams.Flush(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tc.want) {
			t.Errorf("terminal %v: %q lacks %q", tc.terminal, out.String(), tc.want)
		}
	}
}
