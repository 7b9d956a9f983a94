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

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
)

// Endpoint is a question that requests may ask. Its parameters are the flags of the command of the same name, with _
// for -, but for those that name a file, a folder or a program.
type Endpoint struct {
	Name, Summary string
	// Ask adds the parameters to a set of flags, and returns what answers.
	Ask func(*session.Factory, *pflag.FlagSet) func(context.Context) (any, error)
	// Schema is the name of the answer in ask.Schemas(), and List says that the answer is a list of them.
	Schema string
	List   bool
	// Others are schemas of what some parameters make of the answer.
	Others []any

	params []string // once it is served
}

// Content is what a server answers: questions, and a page about a problem.
type Content struct {
	Endpoints []Endpoint
	// Page adds the flags of a problem to a set of flags, and returns what makes the page about it.
	Page func(*session.Factory, *pflag.FlagSet) func(context.Context) (*report.Page, error)
}

// settings are the parameters that are settings of the command line.
var settings = []string{"arch", "device", "model", "kernel", "rung", "timing", "dtype", "option"}

// paramsOf are the parameters of a question: the settings, and its flags that name no file. Without flags it has none.
func paramsOf[T any](add func(*session.Factory, *pflag.FlagSet) T) []string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(&session.Factory{}, flags)
	if !flags.HasFlags() {
		return nil
	}
	names := slices.Clone(settings)
	flags.VisitAll(func(f *pflag.Flag) {
		if name := parameter(f.Name); !session.NamesFile(f) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names
}

// answer sends the answer to a question.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e Endpoint) {
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
func (s *Server) value(ctx context.Context, e Endpoint, r *http.Request) (any, error) {
	values, err := asked(r, e.params)
	if err != nil {
		return nil, err
	}
	f, err := s.factoryFor(values, e.params)
	if err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet(e.Name, pflag.ContinueOnError)
	answer := e.Ask(f, flags)
	if err := setFlags(flags, values); err != nil {
		return nil, err
	}
	v, err := answer(ctx)
	return v, errors.Join(err, ctx.Err())
}

// setFlags sets the flags of a question.
func setFlags(flags *pflag.FlagSet, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) { // of several faults, the same one is said every time
		if flags.Lookup(strings.ReplaceAll(name, "_", "-")) == nil {
			continue // a setting that is none of the question's own flags
		}
		if err := flags.Set(strings.ReplaceAll(name, "_", "-"), values[name]); err != nil {
			return diag.Inputf("%s %q %v", name, values[name], wrong(err)).Do("see openapi.json")
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
func (s *Server) factoryFor(values map[string]string, known []string) (*session.Factory, error) {
	if rung := values["rung"]; rung != "" && !slices.Contains(config.Rungs(), rung) {
		return nil, diag.Inputf("unknown rung %q", rung).Do("use one of %s", strings.Join(config.Rungs(), ", "))
	}
	streams := iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard)
	streams.Hint = s.hintFor(known)
	f := s.factory.For(streams)
	f.Settings.Format = config.JSON
	if value, ok := values["arch"]; ok {
		// The device that this machine's settings name belongs to their architecture, not to the question's.
		f.Settings.Arch, f.Settings.Device = []string{value}, ""
	}
	for name, setting := range map[string]*string{
		"device": &f.Settings.Device, "model": &f.Settings.Model, "kernel": &f.Settings.Kernel,
		"rung": &f.Settings.Rung, "timing": &f.Settings.Timing, "dtype": &f.Settings.DType,
	} {
		if value, ok := values[name]; ok {
			*setting = value
		}
	}
	if value, ok := values["option"]; ok {
		f.PluginOptions = strings.Split(value, ",")
	}
	for _, names := range append(slices.Clone(f.Settings.Arch), f.Settings.Device) {
		for name := range strings.SplitSeq(names, ",") {
			if models.IsLive(strings.TrimSpace(name)) {
				return nil, diag.Inputf("the GPU of this machine is not asked for others").At("%s", name).Do("name a device")
			}
		}
	}
	return f, nil
}
