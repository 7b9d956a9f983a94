//go:build cuda

package cuda

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// cubins keeps machine code in a folder, by the text that it was made from. What cannot be kept, or is not as it was
// written, only costs the time to make it again.
type cubins struct {
	// root bounds what is kept: the folders of all versions of ptxas are in it. folder is this version's.
	root, folder string
	// limit is the most bytes below root, apart from what other processes write at the same time.
	limit int64

	mu sync.Mutex
	// room is how many bytes may be written before the files below root are counted again.
	room int64
}

// newCubins keeps up to limit bytes below a folder, which must be this user's alone to write to. Each maker has a
// folder of its own there.
func newCubins(root string, maker []byte, limit int64) (*cubins, error) {
	sum := sha256.Sum256(maker)
	folder := filepath.Join(root, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	for _, path := range []string{root, folder} { // machine code of another user is not run, whatever it hashes to
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		if err := openfile.CheckOwner(path, info); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return &cubins{root: root, folder: folder, limit: limit}, nil
}

// path is the file of a text's machine code.
func (c *cubins) path(text string) string {
	sum := sha256.Sum256([]byte(text))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:])+".cubin")
}

// digest is what the file of an image begins with. It holds for this text alone.
func digest(text string, image []byte) []byte {
	h := sha256.New()
	of := sha256.Sum256([]byte(text))
	_, _ = h.Write(of[:]) // a hash takes everything
	_, _ = h.Write(image)
	return h.Sum(nil)
}

// get returns the machine code of a text, nil if it is not there or not whole.
func (c *cubins) get(text string) []byte {
	path := c.path(text)
	file, err := os.ReadFile(path)
	if err != nil || len(file) <= sha256.Size {
		return nil
	}
	image := file[sha256.Size:]
	if !bytes.Equal(file[:sha256.Size], digest(text, image)) {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the time of its last use, for reserve
	return image
}

// put keeps the machine code of a text. Another process sees the whole file or none.
func (c *cubins) put(text string, image []byte) {
	file := slices.Concat(digest(text, image), image)
	c.reserve(int64(len(file)))
	_ = durable.Write(c.path(text), 0o600, file)
}

// reserve makes room for a file. It deletes the files that were not used for the longest time, until an eighth of the
// limit is free beside the new file, so that they are not counted for each.
func (c *cubins) reserve(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room -= size; c.room >= 0 {
		return
	}
	type entry struct {
		path string
		size int64
		used time.Time
	}
	var all []entry
	total := int64(0)
	_ = filepath.WalkDir(c.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				all = append(all, entry{path, info.Size(), info.ModTime()})
				total += info.Size()
			}
		}
		return nil // another process may have deleted it
	})
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
	most := c.limit - c.limit/8 - size
	for i := 0; i < len(all) && total > most; i++ {
		if os.Remove(all[i].path) == nil {
			total -= all[i].size
		}
	}
	c.room = max(0, c.limit-size-total)
}
