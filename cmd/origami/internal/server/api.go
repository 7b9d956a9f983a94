package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/catalogcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/evalcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/picturecmd"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/spf13/pflag"
)

// endpoint is a question that requests may ask. Its parameters are flags of the command of the same name, with _ for -.
// Flags that name a file or start a measurement are left out.
type endpoint struct {
	name, summary string
	params        []string
	// ask adds the parameters to a set of flags, and returns what answers.
	ask func(*session.Factory, *pflag.FlagSet) func(context.Context) (any, error)
	// schema is the name of the answer in ask.Schemas(), and list says that the answer is a list of them.
	schema string
	list   bool
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
		{"select", pickcmd.SelectShort, with("regret"), pickcmd.SelectAsk, "Answer", false},
		{"rank", pickcmd.RankShort, with("top"), pickcmd.RankAsk, "Ranked", true},
		{"explain", pickcmd.ExplainShort, with("config"), pickcmd.ExplainAsk, "Explanation", false},
		{"compare", comparecmd.Short, with("same_model", "price", "watts"), comparecmd.Ask, "Comparison", false},
		{"roofline", picturecmd.RooflineShort, with("config", "measured"), picturecmd.RooflineAsk, "Rooflines", false},
		{"map", picturecmd.MapShort, slices.Concat(settings, grid), picturecmd.MapAsk, "Cell", true},
		{"eval", evalcmd.Short, settings, evalcmd.Ask, "Evaluation", false},
		{"archs", catalogcmd.Short, nil, catalogcmd.Ask, "Arch", true},
	}
}

// Unserved are the commands that no endpoint answers, with the reason.
var Unserved = map[string]string{
	"arch": "its list is archs; show has the parameters of explain", "report": "the page at / is it",
	"bench": "it measures, or reads files", "calibrate": "it measures", "tune": "it measures", "ladder": "it measures",
	"fit": "it reads measurements, and takes minutes", "logic": "it reads files", "export": "it writes files",
	"plugin": "it starts programs", "serve": "it is the server", "config": "the settings are the server's own",
	"version": "/metrics and the page say it", "completion": "it is for shells", "help": "/openapi.json describes all",
}

// Serves reports whether an endpoint answers what a command does.
func Serves(command string) bool {
	return slices.ContainsFunc(endpoints(), func(e endpoint) bool { return e.name == command })
}

// answer sends the answer to a question.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e endpoint) {
	var out buffer
	v, err := s.value(r.Context(), e, r)
	if err == nil {
		err = write(&out, v)
	}
	if err != nil {
		refuse(w, statusOf(r.Context(), err), s.failure(r.Context(), err, e.params))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out.Bytes()) // the client is gone
}

// write writes an answer as JSON, a list with an element per line.
func write(out *buffer, v any) error {
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		line, err := ask.Encode(v)
		if err == nil {
			_, err = out.Write(line)
		}
		return err
	}
	separator := "["
	for i := range list.Len() {
		line, err := ask.Encode(list.Index(i).Interface())
		if err == nil {
			_, err = out.Write(append([]byte(separator), bytes.TrimSpace(line)...))
		}
		if err != nil {
			return err
		}
		separator = ",\n"
	}
	end := "]\n"
	if list.Len() == 0 {
		end = "[]\n"
	}
	_, err := out.Write([]byte(end))
	return err
}

// value answers the question of a request.
func (s *Server) value(ctx context.Context, e endpoint, r *http.Request) (any, error) {
	values, err := asked(r, e.params)
	if err != nil {
		return nil, err
	}
	f, err := s.factoryFor(values, e.params)
	if err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet(e.name, pflag.ContinueOnError)
	answer := e.ask(f, flags)
	if err := setFlags(flags, values); err != nil {
		return nil, err
	}
	v, err := answer(ctx)
	return v, errors.Join(err, ctx.Err())
}

// setFlags sets the flags that are no settings.
func setFlags(flags *pflag.FlagSet, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) { // of several faults, the same one is said every time
		if slices.Contains(settings, name) {
			continue
		}
		if err := flags.Set(strings.ReplaceAll(name, "_", "-"), values[name]); err != nil {
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
func (s *Server) factoryFor(values map[string]string, params []string) (*session.Factory, error) {
	if rung := values["rung"]; rung != "" && !slices.Contains(config.Rungs(), rung) {
		return nil, diag.Inputf("unknown rung %q", rung).Do("use one of %s", strings.Join(config.Rungs(), ", "))
	}
	streams := iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard)
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
