// Package report writes what commands answered as a page that people look at and send on.
package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/site/page"
)

// Usage is the help of the flag that names the page.
const Usage = "also write the answer as a page into this `FILE`, which a browser opens without a network"

// Write writes the page with the JSON of a command to the file that --report names, and says so. Without a file it does
// nothing.
func Write(
	ctx context.Context, f *session.Factory, file string, numbers func(*iostreams.Streams, show.Format) error,
) error {
	if file == "" {
		return nil
	}
	var out bytes.Buffer
	s := iostreams.Plain(strings.NewReader(""), &out, io.Discard)
	_, err := session.UntilCancelled(ctx, func() (struct{}, error) {
		if err := numbers(s, show.JSON); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, s.Flush()
	})
	if err != nil {
		return err
	}
	verb := ""
	if len(f.Args) > 0 {
		verb = f.Args[0]
	}
	return Pages(ctx, f, "--report", file, []page.Answer{{Verb: verb, Command: Command(f), JSON: out.Bytes()}})
}

// Pages writes the page with answers to the file that a flag names, and says so. An earlier page stays until the new
// one is whole.
func Pages(ctx context.Context, f *session.Factory, flag, file string, answers []page.Answer) error {
	footer := fmt.Sprintf("Written by %s on %s with: %s", session.Software(), time.Now().UTC().Format(time.DateOnly),
		Command(f))
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
		return diag.Inputf("the page cannot be written: %v", err).At("%s %s", flag, file).Do("name another file")
	}
	f.Streams.Note("the page is " + file)
	return nil
}

// Check refuses a file that cannot be written, before anything is computed for it.
func Check(flag, file string) error {
	if info, err := os.Stat(filepath.Dir(file)); file != "" && (err != nil || !info.IsDir()) {
		return diag.Inputf("there is no folder %s", filepath.Dir(file)).At("%s %s", flag, file).
			Do("make it, or name another file")
	}
	return nil
}

// Command is the command line as people read it.
func Command(f *session.Factory) string {
	return printable.Line("origami " + strings.Join(f.Args, " "))
}
