package datastore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// shardFile is the file of a shard's folder that says which part of which work it is.
const shardFile = "shard.json"

// shardPattern matches the folders of shards.
const shardPattern = "shard-*-of-*"

// shardState is the content of shardFile.
type shardState struct {
	Index int `json:"index"`
	Of    int `json:"of"`
	// Work identifies the work that is shared. Shards of another work are parts of another whole.
	Work string `json:"work"`
	// Finished means that the shard has measured all of its part.
	Finished bool `json:"finished"`
}

// ShardFolder is the folder of a shard in the folder that its measurements are merged into.
func ShardFolder(folder string, s measure.Shard) string {
	if s.Of == 0 {
		return folder
	}
	return filepath.Join(folder, fmt.Sprintf("shard-%d-of-%d", s.Index, s.Of))
}

// Work identifies the measuring of problems: what asks for it, and the problems in any order.
func Work(what string, problems []gemm.Problem) string {
	var sum [sha256.Size]byte
	for i := range problems {
		one := sha256.Sum256([]byte(problems[i].String() + problems[i].Groups.String()))
		for j := range sum {
			sum[j] ^= one[j]
		}
	}
	all := sha256.Sum256(append(sum[:], what...))
	const shown = 8
	return hex.EncodeToString(all[:shown])
}

// ContinueShard opens the folder of a shard as Open does. Its data also has what is merged in the folder above, so that
// nothing of that is measured again.
func ContinueShard(
	ctx context.Context, streams *iostreams.Streams, want *dataset.Dataset, folder string, s measure.Shard, work string,
) (*Store, error) {
	own := ShardFolder(folder, s)
	kept, err := Open(ctx, own, want)
	if err != nil {
		return nil, err
	}
	if t := kept.Torn; t != nil {
		streams.Warn(fmt.Sprintf("%s: %s; it is dropped and measured again", t.Where, t.Why))
	}
	if s.Of == 0 {
		return kept, nil
	}
	if err = addMerged(ctx, kept.Data, folder, own); err == nil {
		err = writeShard(own, &shardState{Index: s.Index, Of: s.Of, Work: work})
	}
	if err != nil {
		_ = kept.Close() // the error says more
		return nil, err
	}
	return kept, nil
}

// FinishShard notes that a shard has measured all of its part.
func FinishShard(streams *iostreams.Streams, folder string, s measure.Shard, work string) error {
	if s.Of == 0 {
		return nil
	}
	err := writeShard(ShardFolder(folder, s), &shardState{Index: s.Index, Of: s.Of, Work: work, Finished: true})
	if err == nil {
		streams.Note(fmt.Sprintf("part %s is done; `origami records merge %s` puts the parts together", s, folder))
	}
	return err
}

func writeShard(folder string, s *shardState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := durable.Write(filepath.Join(folder, shardFile), 0o644, append(text, '\n')); err != nil {
		return unwritable(folder, err)
	}
	return nil
}

// readShard returns which part a folder is, nil if it is none.
func readShard(folder string) (*shardState, error) {
	name := filepath.Join(folder, shardFile)
	f, _, err := openfile.Regular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Inputf("it cannot be read: %v", diag.WithoutPath(err)).At("%s", name)
	}
	defer func() { _ = f.Close() }()
	text, err := limit.ReadAll(f, name, limit.Text, "restore it")
	if err != nil {
		return nil, err
	}
	var s shardState
	if err := strictjson.Unmarshal(text, &s); err != nil || s.Index < 1 || s.Index > s.Of ||
		s.Of > measure.MostShards {
		return nil, diag.Inputf("it does not say which part of which work the folder is").At("%s", name).
			Do("remove it, or measure the shard again")
	}
	return &s, nil
}

// addMerged adds what earlier merges left in folder to the measurements of a shard in own.
func addMerged(ctx context.Context, data *dataset.Dataset, folder, own string) error {
	if !described(folder) {
		return nil
	}
	merged, _, err := dataset.Recover(folder, Files(ctx, folder))
	if err != nil {
		return err
	}
	if what := data.Difference(merged.Conditions); what != "" {
		return diag.Inputf("the measurements in it were made under other conditions than those in %s: %s", own, what).
			At("%s", folder).Do("name another folder with --records")
	}
	for _, m := range append(merged.All(), merged.Checks()...) {
		_ = data.Add(m) // an error says that the shard has it
	}
	return nil
}
