// Package reportcmd is `origami report`: one page with answers, to look into and to send on.
package reportcmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/picturecmd"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/site/page"
)

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	output := "report.html"
	cmd := &cobra.Command{
		Use:   "report (--arch ARCH[,ARCH…] (-m SIZE -n SIZE -k SIZE | --problems FILE) | JSON…)",
		Short: "Write a page with answers, to look at and to send on",
		Long: "Write one HTML file that a browser opens without a network: the answer of select or, for several\n" +
			"architectures, of compare, and for one problem also of explain and roofline, as figures with tables\n" +
			"behind them. The JSON of these commands is in the page. Or name files of JSON that commands have\n" +
			"written with --json, - for stdin, and the page shows these. `origami serve` shows the same page with\n" +
			"a form. A problem that a model does not answer is named on the page and on stderr, and the exit status\n" +
			"is 2.",
		Example: `  origami report --arch h200 -m 4096 -n 4096 -k 4096 --dtype bf16
  origami report --arch h200,mi300x --problems shapes.csv --output h200-mi300x.html
  origami report --arch h200 -m 1:8192 -n 4096 -k 4096
  origami tune shapes.csv --arch h200 --dry-run --json | origami report -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := check(output); err != nil {
				return err
			}
			answers, err := answers(cmd.Context(), f, cmd.Flags(), files)
			if len(answers) == 0 {
				return err
			}
			return cmp.Or(write(cmd.Context(), f, output, answers), err)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	pickcmd.NewSelect(f).Flags().VisitAll(func(flag *pflag.Flag) {
		if !session.NamesFile(flag) || flag.Name == "problems" {
			flags.AddFlag(flag)
		}
	})
	flags.StringVarP(&output, "output", "o", output, "`FILE` to write")
	session.Files(flags, "output")
	return cmd
}

// answers reads the answers of files, or asks the commands that answer the question of the flags. The error says what a
// command had no answer for.
func answers(ctx context.Context, f *session.Factory, flags *pflag.FlagSet, files []string) ([]page.Answer, error) {
	if len(files) > 0 {
		return read(ctx, f, files)
	}
	if _, err := f.Manifests(ctx); err != nil { // so that the commands share the plugins
		return nil, err
	}
	words := map[string]string{}
	flags.Visit(func(flag *pflag.Flag) { words[flag.Name] = flag.Value.String() })
	devices, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, err
	}
	many := words["problems"] != "" || strings.ContainsAny(words["m"], ",:")
	first, verb := pickcmd.NewSelect, "select"
	switch {
	case len(devices) > 1:
		first, verb = comparecmd.New, "compare"
	case !many && words["contract"] == "":
		for name, value := range map[string]string{"advice": "true", "regret": "true", "top": "10"} {
			words[name] = cmp.Or(words[name], value)
		}
	}
	a, failed := answered(ctx, f, verb, first, words)
	if len(a.JSON) == 0 || many || failed != nil {
		return slices.DeleteFunc([]page.Answer{a}, func(a page.Answer) bool { return len(a.JSON) == 0 }), failed
	}
	out := []page.Answer{a}
	add := func(verb string, make func(*session.Factory) *cobra.Command) {
		if a, err := answered(ctx, f, verb, make, words); err == nil { // the verdict stands without it
			out = append(out, a)
		}
	}
	if len(devices) == 1 {
		delete(words, "advice")
		add("explain", pickcmd.NewExplain)
	}
	if words["contract"] == "" {
		add("roofline", picturecmd.NewRoofline)
	}
	return out, ctx.Err()
}

// answered asks a command, with --json and the flags that it knows.
func answered(ctx context.Context, f *session.Factory, verb string, make func(*session.Factory) *cobra.Command,
	words map[string]string,
) (page.Answer, error) {
	var out bytes.Buffer
	s := iostreams.Plain(f.Streams.In, &out, f.Streams.ErrWriter())
	s.Hint, s.JSONErrors = f.Streams.Hint, f.Streams.JSONErrors
	to := f.For(s)
	to.Settings.Format = config.JSON
	cmd := make(to)
	cmd.SetContext(ctx)
	line := []string{"origami", verb}
	query := url.Values{}
	if len(f.Settings.Arch) > 0 {
		line = append(line, "--arch", strings.Join(f.Settings.Arch, ","))
		query.Set("arch", strings.Join(f.Settings.Arch, ","))
	}
	var wrong error
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		value, given := words[flag.Name]
		if !given || wrong != nil {
			return
		}
		if err := flag.Value.Set(strings.Trim(value, "[]")); err != nil {
			wrong = err
			return
		}
		flag.Changed = true
		query.Set(strings.ReplaceAll(flag.Name, "-", "_"), value)
		switch {
		case value == "true":
			line = append(line, "--"+flag.Name)
		case len(flag.Name) == 1:
			line = append(line, "-"+flag.Name, value)
		default:
			line = append(line, "--"+flag.Name, value)
		}
	})
	err := cmp.Or(wrong, cmd.RunE(cmd, nil))
	err = cmp.Or(err, s.Flush())
	a := page.Answer{Verb: verb, Command: printable.Line(strings.Join(line, " ")), JSON: out.Bytes()}
	if words["problems"] == "" {
		a.Query = query.Encode()
	}
	return a, err
}

// write writes the page with answers to a file, and says so. An earlier page stays until the new one is whole.
func write(ctx context.Context, f *session.Factory, file string, answers []page.Answer) error {
	footer := fmt.Sprintf("Written by %s on %s with: %s", session.Software(), time.Now().UTC().Format(time.DateOnly),
		printable.Line("origami "+strings.Join(f.Args, " ")))
	names := map[string]string{}
	manifests, _ := f.Manifests(ctx) // without plugins the ids are their names
	for i := range manifests {
		for _, a := range manifests[i].Archs {
			for _, d := range a.Devices {
				names[printable.Line(d.ID)] = printable.Line(d.Name)
			}
		}
	}
	err := durable.Replace(file, 0o644, func(w io.Writer) error { return page.Write(w, footer, names, answers) })
	if err != nil {
		return diag.Inputf("the page cannot be written: %v", err).At("--output %s", file).Do("name another file")
	}
	f.Streams.Note("the page is " + file)
	return nil
}

// check refuses a file that cannot be written, before anything is computed for it.
func check(file string) error {
	if info, err := os.Stat(filepath.Dir(file)); file != "" && (err != nil || !info.IsDir()) {
		return diag.Inputf("there is no folder %s", filepath.Dir(file)).At("--output %s", file).
			Do("make it, or name another file")
	}
	return nil
}

// read reads what commands have written as JSON.
func read(ctx context.Context, f *session.Factory, files []string) (answers []page.Answer, err error) {
	for _, name := range files {
		text, err := session.UntilCancelled(ctx, func() ([]byte, error) {
			if name == "-" {
				return io.ReadAll(limit.Reader(f.Streams.In, "stdin", limit.Table, "write less at once"))
			}
			return os.ReadFile(name)
		})
		if err == nil {
			err = page.Check(text)
		}
		if err != nil {
			return nil, diag.Inputf("it cannot be read as JSON: %v", err).At("%s", name).
				Do("name what a command wrote with --json")
		}
		answers = append(answers, page.Answer{Verb: "answer", Command: printable.Line(name), JSON: text})
	}
	return answers, nil
}
