package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Endpoint is a question that requests may ask. Its parameters are the flags of the command of the same name, with _
// for -, but for those that name a file, a folder or a program.
type Endpoint struct {
	Name string
	// Summary says what it answers.
	Summary string
	// Command makes the command, whose JSON is the answer.
	Command func(*session.Factory) *cobra.Command
	// Many says that it also answers for a list of sizes, in the parameter problems, and Sides that the answer says itself
	// which of its sides have none.
	Many, Sides bool
	// List are the flags with which the answer is a list. With "" it is always one.
	List []string

	params []string // once it is served
}

// sizes is the parameter for a list of problems: a row of sizes and of ranges, in place of m, n and k.
const sizes = "problems"

// mostSizes is how many problems a question may have.
const mostSizes = 512

// settings are the parameters that are settings of the command line.
var settings = []string{"arch", "device", "model", "kernel", "rung", "timing", "dtype", "option"}

// parameters are the settings, and the flags of the question that name no file. Without flags there are none.
func (e *Endpoint) parameters() []string {
	flags := e.Command(&session.Factory{}).Flags()
	if !flags.HasFlags() {
		return nil
	}
	names := slices.Clone(settings)
	flags.VisitAll(func(f *pflag.Flag) {
		if name := parameter(f.Name); !session.NamesFile(f) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	if e.Many {
		names = append(names, sizes)
	}
	return names
}

// answer sends the answer to a question.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e Endpoint) {
	text, err := s.value(r.Context(), e, r)
	if err != nil {
		refuse(w, statusOf(r.Context(), err), s.failure(r.Context(), err, e.params))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client is gone
}

// list is a list of answers, an element per line.
func list(answers [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(answers, []byte(",\n")), []byte("]\n"))
}

// value answers the question of a request, or the questions of a list of sizes.
func (s *Server) value(ctx context.Context, e Endpoint, r *http.Request) ([]byte, error) {
	values, err := asked(r, e.params)
	if err != nil {
		return nil, err
	}
	row, many := values[sizes]
	if !many {
		return s.one(ctx, e, values)
	}
	for _, name := range []string{"m", "n", "k", "contract", "groups"} {
		if values[name] != "" {
			return nil, diag.Inputf("%s and %s contradict each other", sizes, name).Do("leave one of them out")
		}
	}
	file, inline, err := problems.Inline(sizes, row, gemm.New(1, 1, 1))
	if err == nil && !inline {
		err = diag.Inputf("%q is no row of sizes", row).At(sizes).Do("write one as m=1,16,64:1024,n=4096,k=4096")
	}
	if err != nil {
		return nil, err
	}
	delete(values, sizes)
	var answers [][]byte
	size := 0
	for {
		next := file.Next(false)
		if errors.Is(next.End, io.EOF) {
			return list(answers), nil
		}
		if err := cmp.Or(next.End, next.Bad); err != nil {
			return nil, err
		}
		if len(answers) == mostSizes {
			return nil, diag.Inputf("there are more than %d problems", mostSizes).At(sizes).Do("ask for fewer at once")
		}
		p := &next.Problem
		for name, v := range map[string]int{"m": p.M, "n": p.N, "k": p.K} {
			values[name] = strconv.Itoa(v)
		}
		v, err := s.one(ctx, e, values)
		if err != nil {
			return nil, err
		}
		if size += len(v); size > mostAnswer {
			return nil, errTooLarge
		}
		answers = append(answers, bytes.TrimSpace(v))
	}
}

// one answers one question.
func (s *Server) one(ctx context.Context, e Endpoint, values map[string]string) ([]byte, error) {
	var out buffer
	f, err := s.factoryFor(values, e.params, &out)
	if err != nil {
		return nil, err
	}
	cmd := e.Command(f)
	cmd.SetContext(ctx)
	if err := setFlags(cmd.Flags(), values); err != nil {
		return nil, err
	}
	err = cmd.RunE(cmd, nil)
	var said *iostreams.Reported
	if errors.As(err, &said) {
		if err = said.Err; e.Sides {
			err = nil
		}
	}
	if err = cmp.Or(err, f.Streams.Flush(), ctx.Err()); err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	lists := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f == nil || f.Value.String() != f.DefValue
	}
	if len(lines) > 1 || slices.ContainsFunc(e.List, lists) {
		return list(lines), nil
	}
	return out.Bytes(), nil
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

// factoryFor returns a factory for one question with these parameters, which shares the plugins. The answer goes to
// out.
func (s *Server) factoryFor(values map[string]string, known []string, out io.Writer) (*session.Factory, error) {
	if rung := values["rung"]; rung != "" && !slices.Contains(config.Rungs(), rung) {
		return nil, diag.Inputf("unknown rung %q", rung).Do("use one of %s", strings.Join(config.Rungs(), ", "))
	}
	streams := iostreams.Plain(strings.NewReader(""), out, io.Discard)
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
