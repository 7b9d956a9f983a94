package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/archcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/evalcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/explaincmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/mapcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/rankcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/rooflinecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/selectcmd"
	"github.com/origami-gemm/origami/core/diag"
)

// endpoint is a command that requests may run. Its parameters are flags of the command, with _ for -. Flags that name a
// file or start a measurement are left out.
type endpoint struct {
	name    string
	command func(*session.Factory) *cobra.Command
	params  []string
	// schema is the name of an answer in schemas.json, and lines says that the answer is a list of them.
	schema string
	lines  bool
	// partial says that an answer for a part of the question says itself what is missing. Any other is an error.
	partial bool
}

// settings are the parameters that are settings of the command line.
var settings = []string{"arch", "device", "model", "kernel", "rung", "dtype"}

// shape are the parameters that describe a problem.
var shape = []string{"m", "n", "k", "batch", "groups", "trans_a", "trans_b", "lda", "ldb", "ldc", "alpha", "beta",
	"align", "out_dtype"}

// grid are the parameters of a map.
var grid = []string{"m", "n", "k", "trans_a", "trans_b", "out_dtype"}

func endpoints() []endpoint {
	with := func(more ...string) []string { return slices.Concat(settings, shape, more) }
	return []endpoint{
		{name: "select", params: with("regret"), schema: "Answer",
			command: func(f *session.Factory) *cobra.Command { return selectcmd.New(f, selectcmd.Run) }},
		{name: "rank", params: with("top"), schema: "Ranked", lines: true,
			command: func(f *session.Factory) *cobra.Command { return rankcmd.New(f, rankcmd.Run) }},
		{name: "explain", params: with("config"), schema: "Explanation",
			command: func(f *session.Factory) *cobra.Command { return explaincmd.New(f, explaincmd.Run) }},
		{name: "compare", params: with("same_model", "price", "watts"), schema: "Comparison", partial: true,
			command: func(f *session.Factory) *cobra.Command { return comparecmd.New(f, comparecmd.Run) }},
		{name: "roofline", params: with("config", "measured"), schema: "Rooflines",
			command: func(f *session.Factory) *cobra.Command { return rooflinecmd.New(f, rooflinecmd.Run) }},
		{name: "map", params: slices.Concat(settings, grid), schema: "Cell", lines: true,
			command: func(f *session.Factory) *cobra.Command { return mapcmd.New(f, mapcmd.Run) }},
		{name: "eval", params: settings, schema: "Evaluation",
			command: func(f *session.Factory) *cobra.Command { return evalcmd.New(f, evalcmd.Run) }},
		{name: "archs", command: listOf, schema: "Arch", lines: true},
	}
}

// listOf is `arch ls`.
func listOf(f *session.Factory) *cobra.Command {
	cmd, _, _ := archcmd.New(f).Find([]string{"ls"}) // it exists
	return cmd
}

// answer runs a command and sends its JSON.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e endpoint) {
	var out buffer
	err := s.run(r.Context(), &out, e, r)
	if err != nil {
		refuse(w, statusOf(r.Context(), err), s.failure(r.Context(), err, e.params))
		return
	}
	text := out.Bytes()
	if e.lines { // one object per line becomes a list
		text = slices.Concat([]byte("["), bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\n"), []byte(",\n")), []byte("]\n"))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client is gone
}

// run runs the command of an endpoint on the parameters of a request.
func (s *Server) run(ctx context.Context, out io.Writer, e endpoint, r *http.Request) error {
	values, err := asked(r, e.params)
	if err != nil {
		return err
	}
	f, err := s.factoryFor(out, values, e.params)
	if err != nil {
		return err
	}
	cmd := e.command(f)
	cmd.SetContext(ctx)
	if err := setFlags(cmd, values); err != nil {
		return err
	}
	if err = cmd.RunE(cmd, nil); err == nil {
		err = f.Streams.Flush()
	}
	if reported := (*iostreams.Reported)(nil); errors.As(err, &reported) {
		if err = f.Streams.Flush(); err == nil && (!e.partial || out.(*buffer).Len() == 0) {
			err = reported.Err
		}
	}
	return errors.Join(err, ctx.Err())
}

// setFlags sets the flags of a command that are no settings.
func setFlags(cmd *cobra.Command, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) { // of several faults, the same one is said every time
		if slices.Contains(settings, name) {
			continue
		}
		if err := cmd.Flags().Set(strings.ReplaceAll(name, "_", "-"), values[name]); err != nil {
			return diag.Inputf("%s %q %v", name, values[name], wrong(err)).Do("see /openapi.json")
		}
	}
	return nil
}

// wrong says what is wrong with a value of a flag.
func wrong(err error) string {
	number := (*strconv.NumError)(nil)
	switch {
	case !errors.As(err, &number):
		return errors.Unwrap(err).Error()
	case number.Func == "ParseBool":
		return "is neither true nor false"
	case errors.Is(err, strconv.ErrRange):
		return "is too large"
	default:
		return "is no number"
	}
}

// factoryFor returns a factory for one question with these parameters, which shares the plugins.
func (s *Server) factoryFor(out io.Writer, values map[string]string, params []string) (*session.Factory, error) {
	if rung := values["rung"]; rung != "" && !slices.Contains(config.Rungs(), rung) {
		return nil, diag.Inputf("unknown rung %q", rung).Do("use one of %s", strings.Join(config.Rungs(), ", "))
	}
	streams := iostreams.Plain(strings.NewReader(""), out, io.Discard)
	streams.Hint = hintFor(params)
	f := s.factory.For(streams)
	f.Settings.Format = config.JSON
	if value, ok := values["arch"]; ok {
		// The device that this machine's settings name belongs to their architecture, not to the question's.
		f.Settings.Arch, f.Settings.Device = []string{value}, ""
	}
	for name, setting := range map[string]*string{
		"device": &f.Settings.Device, "model": &f.Settings.Model, "kernel": &f.Settings.Kernel,
		"rung": &f.Settings.Rung, "dtype": &f.Settings.DType,
	} {
		if value, ok := values[name]; ok {
			*setting = value
		}
	}
	for _, names := range append(slices.Clone(f.Settings.Arch), f.Settings.Device) {
		for name := range strings.SplitSeq(names, ",") {
			if session.NamesGPU(strings.TrimSpace(name)) {
				return nil, diag.Inputf("the GPU of this machine is not asked for others").At("%s", name).Do("name a device")
			}
		}
	}
	return f, nil
}
