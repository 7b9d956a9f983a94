package datastore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/durable"
)

// TuneFile is the file of a folder of measurements that says what tuning made of them. It marks a folder that lacks
// some candidates.
const TuneFile = "tune.json"

// Merging says what became of the folders that were merged.
type Merging struct {
	*dataset.Merged
	// Torn are lines that were cut off, and left out.
	Torn []dataset.Truncated
	// Missing says which parts of a work are not there, or not finished.
	Missing []string
}

// Expand lists the folders of the shards in place of a folder that has them.
func Expand(folders []string) (all []string, err error) {
	for _, folder := range folders {
		folder = filepath.Clean(folder)
		quoted := regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(folder, `\$0`)
		shards, err := filepath.Glob(filepath.Join(quoted, shardPattern))
		if err != nil {
			return nil, err
		}
		if len(shards) == 0 {
			shards = []string{folder}
		}
		all = append(all, shards...)
	}
	return all, nil
}

// Merge puts the measurements of folders into a folder, beside what it has. If it is interrupted, the folder is as it
// was or has all.
func Merge(ctx context.Context, into string, folders []string) (_ *Merging, err error) {
	into = filepath.Clean(into)
	out := &Merging{}
	var others []*dataset.Dataset
	partial := marked(into)
	for _, folder := range folders {
		d, torn, err := dataset.Recover(folder, Files(ctx, folder))
		if err != nil {
			return nil, err
		}
		if torn != nil {
			out.Torn = append(out.Torn, *torn)
		}
		if d.Count(func(m *dataset.Measurement) bool { return m.Status == dataset.OK && len(m.Samples) == 0 }) > 0 {
			return nil, diag.Inputf("its times are in CSV, without the runs that they come from").At("%s", folder).
				Do("leave it out: only JSON Lines are merged")
		}
		others, partial = append(others, d), partial || marked(folder)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return nil, unwritable(into, err)
	}
	writing, err := lock(into)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, writing.Unlock()) }()
	old, err := before(ctx, into)
	if err != nil {
		return nil, err
	}
	if out.Merged, err = dataset.Merge(into, old, others); err != nil {
		return nil, err
	}
	if out.Missing, err = missing(folders); err != nil {
		return nil, err
	}
	return out, out.write(into, old, others, partial)
}

func marked(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, TuneFile))
	return err == nil
}

// described reports whether a folder is a data set, as far as can be seen.
func described(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, dataset.DescriptionFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// before reads what is in the folder that is merged into, nil if it is no data set yet.
func before(ctx context.Context, into string) (*dataset.Dataset, error) {
	if !described(into) {
		return nil, nil
	}
	files, err := dataset.Measurements(into, Files(ctx, into))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if file != dataset.Log {
			return nil, diag.Inputf("only %s is rewritten, and the folder has this file too", dataset.Log).
				At("%s", filepath.Join(into, file)).Do("move it to a folder of its own, or merge into another one")
		}
	}
	d, _, err := dataset.Recover(into, Files(ctx, into))
	return d, err
}

// write replaces the measurements of the folder.
func (out *Merging) write(into string, old *dataset.Dataset, others []*dataset.Dataset, partial bool) error {
	if old == nil {
		out.Source, out.Software = "origami records merge", others[0].Software
		for _, d := range others {
			if d.Difference(out.Conditions) == "" {
				out.Software = d.Software
			}
		}
		if err := begin(into, out.Dataset); err != nil {
			return err
		}
	}
	if partial && !marked(into) {
		if err := durable.Write(filepath.Join(into, TuneFile), 0o644, []byte("{\"tune\":1}\n")); err != nil {
			return unwritable(into, err)
		}
	}
	log := filepath.Join(into, dataset.Log)
	err := durable.Replace(log, 0o644, func(w io.Writer) error {
		var line []byte
		for _, m := range append(out.All(), out.Checks()...) {
			var err error
			if line, err = dataset.AppendLine(line[:0], out.Conditions, &m); err != nil {
				return fmt.Errorf("%s of %s cannot be recorded: %w", m.Label(), m.Problem, err)
			}
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return unwritable(log, err)
	}
	return nil
}

// missing says which parts of the works that folders are shards of are not among them, or not finished.
func missing(folders []string) (texts []string, err error) {
	type whole struct {
		work string
		of   int
	}
	parts := map[whole]map[int]bool{} // those there, and whether they are finished
	for _, folder := range folders {
		s, err := readShard(folder)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		w := whole{s.Work, s.Of}
		if parts[w] == nil {
			parts[w] = map[int]bool{}
		}
		parts[w][s.Index] = parts[w][s.Index] || s.Finished
	}
	for w, finished := range parts {
		lacking := map[string][]int{}
		for i := 1; i <= w.of; i++ {
			if done, there := finished[i]; !there {
				lacking["not there"] = append(lacking["not there"], i)
			} else if !done {
				lacking["not finished"] = append(lacking["not finished"], i)
			}
		}
		for what, list := range lacking {
			texts = append(texts, fmt.Sprintf("%s of %d: %s", numbered(list), w.of, what))
		}
	}
	slices.Sort(texts)
	return texts, nil
}

// numbered lists parts, as in "parts 1, 3", and counts what is too much to list.
func numbered(parts []int) string {
	const listed = 20
	text := "part"
	if len(parts) > 1 {
		text = "parts"
	}
	for i, n := range parts[:min(listed, len(parts))] {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", n)
	}
	if more := len(parts) - listed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
