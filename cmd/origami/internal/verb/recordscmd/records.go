// Package recordscmd is `origami records`: folders of measurements, put together, looked at, held against each other
// and tidied.
package recordscmd

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
)

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Merge, show, compare, verify and tidy folders of measurements",
		Long: "bench and tune keep what they measure in folders. With --shard, each part of the work has a folder of its\n" +
			"own. docs/data-sets.md describes the files.",
		Example: "  origami records merge ./tuned\n" +
			"  origami records show ./tuned",
		Args: session.OnlySubcommands,
		RunE: session.MissingSubcommand,
	}
	cmd.AddCommand(newMerge(f), newShow(f), newDiff(f), newVerify(f), newCompact(f))
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
			"reason. Missing parts are listed; shards that run again measure only what the merged folder lacks.",
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

func newCompact(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "compact FOLDER",
		Short: "Rewrite a folder of measurements without replaced and incomplete lines",
		Long: "Rewrite the measurements of a folder in the order of problems, without lines that later ones replace,\n" +
			"blocks of finals that are not complete, and a last line that was cut off. What counts stays as it is.",
		Example: "  origami records compact ./my-sweep",
		Args:    session.OneArgument("FOLDER", "a folder of measurements"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := datastore.Merge(cmd.Context(), args[0], args)
			if err != nil {
				return err
			}
			return write(f, args[0], 1, m)
		},
	}
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
	if format != table.Table {
		return show.Write(s, format, []mergedJSON{out})
	}
	table.Line(s, "merged", "%s from %s; %d were in several folders, or here before", digits.Plural(out.Measurements,
		"measurement", "measurements"), digits.Plural(folders, "folder", "folders"), out.Several)
	table.Line(s, "into", "%s", into)
	if len(out.Missing) > 0 {
		table.Line(s, "missing", "%s", strings.Join(out.Missing, "; "))
	}
	return nil
}
