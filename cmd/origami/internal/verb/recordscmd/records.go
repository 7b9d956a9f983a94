// Package recordscmd is `origami records`: folders of measurements, put together and looked at.
package recordscmd

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Merge, show and verify folders of measurements",
		Long: "bench and tune keep what they measure in folders. With --shard, each part of the work has a folder of its\n" +
			"own. docs/data-sets.md describes the files.",
		Example: "  origami records merge ./tuned\n" +
			"  origami records show ./tuned",
	}
	cmd.AddCommand(newMerge(f), newShow(f), newVerify(f))
	return cmd
}

func newMerge(f *session.Factory) *cobra.Command {
	var into string
	cmd := &cobra.Command{
		Use:   "merge FOLDER...",
		Short: "Put measurements of several folders together",
		Long: "Put the measurements of folders together, each once, in any order. A folder with shards in it\n" +
			"stands for its shards. Measurements under other conditions or another driver than most, or of a\n" +
			"GPU that was slower or faster than the others with the same kernels, are set apart, with the\n" +
			"reason. Missing parts are listed; shards that run again measure only what the merged folder lacks. The\n" +
			"folder is written anew, without lines that later ones replace, and without incomplete ones.",
		Example: "  origami records merge ./tuned\n" +
			"  origami records merge node1 node2 node3 --into all",
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if into == "" && len(args) > 1 {
				return diag.Inputf("several folders are named, and it is not said where to").At("records merge").
					Do("add --into FOLDER")
			}
			if into == "" {
				into = args[0]
			}
			return merge(cmd.Context(), f, into, args)
		},
	}
	cmd.Flags().StringVar(&into, "into", "", "write to this `FOLDER`, and keep what it has; the only one named otherwise")
	return cmd
}

func atLeastOne(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return session.OneArgument("FOLDER", "a folder of measurements")(cmd, args)
	}
	return nil
}

func newVerify(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FOLDER...",
		Short: "Look for measurements that were changed since they were written",
		Long: "Hold every line of folders of measurements to its checksum and to what a line can say. Lines that other\n" +
			"programs wrote have no checksum, and are counted. Nothing is written.",
		Example: "  origami records verify ./tuned",
		Args:    atLeastOne,
		RunE:    func(cmd *cobra.Command, args []string) error { return verify(cmd.Context(), f, args) },
	}
}

// verifiedJSON is what a folder holds.
type verifiedJSON struct {
	Folder string `json:"folder"` // the folder
	dataset.Verified
}

func verify(ctx context.Context, f *session.Factory, folders []string) error {
	all, err := datastore.Expand(folders)
	if err != nil {
		return err
	}
	rows, damaged := make([]verifiedJSON, len(all)), 0
	for i, folder := range all {
		rows[i].Folder = folder
		rows[i].Verified, err = session.UntilCancelled(ctx, func() (dataset.Verified, error) {
			return dataset.Verify(folder, datastore.Files(ctx, folder))
		})
		if err != nil {
			return err
		}
		damaged += len(rows[i].Damaged)
		for _, line := range rows[i].Damaged {
			f.Streams.Warn(line)
		}
	}
	key := show.Key[verifiedJSON]
	err = show.Write(f.Streams, f.Format(), rows, key("folder"), key("files"), key("lines"),
		key("without_checksum", "without a checksum"), show.Text("damaged", func(r *verifiedJSON) string {
			return strconv.Itoa(len(r.Damaged))
		}))
	if err == nil && damaged > 0 {
		return diag.Inputf("%s as written", digits.Plural(damaged, "line is not", "lines are not")).At("records verify").
			Do("restore the files from a copy, or remove these lines and measure again")
	}
	return err
}

// merge merges.
func merge(ctx context.Context, f *session.Factory, into string, folders []string) error {
	all, err := datastore.Expand(folders)
	if err != nil {
		return err
	}
	m, err := datastore.Merge(ctx, into, all)
	if err != nil {
		return err
	}
	return write(f, into, len(all), m)
}

// mergedJSON says what was merged.
type mergedJSON struct {
	Into         string          `json:"into"`         // the folder that has it
	Folders      int             `json:"folders"`      // how many were merged
	Measurements int             `json:"measurements"` // how many it has now
	Several      int             `json:"in_several"`   // how many of them were in several folders, or there before
	SetApart     []dataset.Apart `json:"set_apart"`    // what does not belong to the others: `name`, `measurements`, `why`
	Torn         []string        `json:"torn"`         // lines that were cut off, and left out
	Missing      []string        `json:"missing"`      // parts of a work that are not there, or not finished
}

func write(f *session.Factory, into string, folders int, m *datastore.Merging) error {
	out := mergedJSON{into, folders, m.Len(), m.Several, append([]dataset.Apart{}, m.Apart...), []string{},
		append([]string{}, m.Missing...)}
	for _, t := range m.Torn {
		out.Torn = append(out.Torn, t.Where)
	}
	s := f.Streams
	for _, t := range out.Torn {
		s.Warn(t + ": the line is cut off, and left out")
	}
	for _, a := range out.SetApart {
		s.Warn(a.Name + ": " + digits.Plural(a.Measurements, "measurement is", "measurements are") + " set apart: " + a.Why)
	}
	format := f.Format()
	if format != show.Table {
		return show.Write(s, format, []mergedJSON{out})
	}
	key := show.Key[mergedJSON]
	show.Facts(s, &out, key("folders"), key("measurements", "has now"), key("in_several", "in several"), key("into"),
		key("missing"))
	return nil
}

// shownJSON says what a folder of measurements has.
type shownJSON struct {
	Arch         string   `json:"arch"` // what was measured
	Device       string   `json:"device"`
	DriverName   string   `json:"driver_device_name,omitempty"` // the driver's name of the device
	Kernel       string   `json:"kernel"`                       // the kernel family
	Executor     string   `json:"executor,omitempty"`           // what ran the kernels
	Version      string   `json:"executor_version,omitempty"`
	Source       string   `json:"source"`         // what measured
	Problems     int      `json:"problems"`       // how many have candidates
	Measurements int      `json:"measurements"`   // of the sweep and the finals
	OK           int      `json:"ok"`             // how many have a time
	Wrong        int      `json:"wrong_numerics"` // how many do not, by status
	NotBuilt     int      `json:"not_built"`
	Failed       int      `json:"failed"`
	Checks       int      `json:"checks"` // how often a known kernel was timed
	GPUs         []gpuRow `json:"gpus"`   // by the GPU and the driver, if they are recorded
}

// gpuRow is what one GPU measured under one driver.
type gpuRow struct {
	GPU          string    `json:"gpu"`          // its number, with --remote and its command; empty if there was one
	Driver       string    `json:"driver"`       // the driver's version
	Measurements int       `json:"measurements"` // how many, checks not included
	From         time.Time `json:"from"`         // the first and the last measurement
	To           time.Time `json:"to"`
	// the highest clock
	Clock unit.Hertz `json:"clock_hz,omitempty" unit:"Hz"`
	// times of known kernels ÷ their medians over all GPUs
	Least ask.Number `json:"known_least"`
	Most  ask.Number `json:"known_most"`
}

func newShow(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "show FOLDER",
		Short:   "Show what a folder of measurements has",
		Long:    "Show what was measured into a folder, by which GPUs, and how steady they were.",
		Example: "  origami records show ./tuned",
		Args:    session.OneArgument("FOLDER", "a folder of measurements"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showFolder(f, d)
		},
	}
}

// open reads a folder. A last line that is being written is left out.
func open(ctx context.Context, folder string) (*dataset.Dataset, error) {
	return session.UntilCancelled(ctx, func() (*dataset.Dataset, error) {
		d, _, err := dataset.Recover(filepath.Clean(folder), datastore.Files(ctx, folder))
		return d, err
	})
}

func showFolder(f *session.Factory, d *dataset.Dataset) error {
	count := func(status dataset.Status) int {
		return d.Count(func(m *dataset.Measurement) bool { return m.Status == status })
	}
	s := shownJSON{Arch: d.Arch, Device: d.Device, DriverName: d.DriverName, Kernel: d.Kernel, Executor: d.Executor,
		Version: d.ExecutorVersion, Source: d.Source, Problems: len(d.Problems()), Measurements: d.Len(),
		OK: count(dataset.OK), Wrong: count(dataset.Wrong), NotBuilt: count(dataset.NotBuilt),
		Failed: count(dataset.Failed) + count(dataset.Timeout), Checks: len(d.Checks()), GPUs: gpus(d)}
	key, fact := show.Key[gpuRow], show.Key[shownJSON]
	return show.Answer(f.Streams, f.Format(), s, func() {
		show.Facts(f.Streams, &s, fact("arch"), fact("device"), fact("driver_device_name", "GPU"), fact("kernel"),
			fact("executor"), fact("executor_version", "version"), fact("source"), fact("problems"),
			fact("measurements", "measured"), fact("ok"), fact("wrong_numerics", "wrong"), fact("not_built", "not built"),
			fact("failed"))
		f.Streams.Printf("\n")
	}, s.GPUs, key("gpu"), key("driver"), key("measurements"),
		show.Text("from", func(g *gpuRow) string { return day(g.From) }),
		show.Text("to", func(g *gpuRow) string { return day(g.To) }), key("clock_hz", "clock"),
		key("known_least", "known kernels, least"), key("known_most", "most ÷ median"))
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// gpus says what each GPU measured.
func gpus(d *dataset.Dataset) []gpuRow {
	type kernel struct {
		problem gemm.Problem
		config  gemm.Config
	}
	times := map[kernel][]unit.Seconds{} // of known kernels
	for _, m := range d.Checks() {
		k := kernel{m.Problem, m.Config}
		times[k] = append(times[k], m.Median)
	}
	unknown := func(m dataset.Measurement) bool { return m.Environment == nil }
	all := slices.DeleteFunc(append(d.All(), d.Checks()...), unknown)
	rows := []gpuRow{}
	for _, of := range score.GroupBy(all, func(m *dataset.Measurement) [2]string {
		return [...]string{m.GPU, m.Environment.Driver}
	}) {
		r := gpuRow{GPU: of[0].GPU, Driver: of[0].Environment.Driver, Least: ask.Number(math.NaN()),
			Most: ask.Number(math.NaN())}
		for i := range of {
			m := &of[i]
			if m.Phase == dataset.Check {
				v := ask.Number(m.Median / stats.Median(times[kernel{m.Problem, m.Config}]))
				if !(r.Least < v) {
					r.Least = v
				}
				if !(r.Most > v) {
					r.Most = v
				}
				continue
			}
			r.Measurements++
			r.Clock = max(r.Clock, m.ClockMax)
			at := m.Environment.Time
			if r.From.IsZero() || at.Before(r.From) {
				r.From = at
			}
			if at.After(r.To) {
				r.To = at
			}
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b gpuRow) int {
		return cmp.Or(cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Driver, b.Driver))
	})
	return rows
}
