//go:build cuda

package cuda

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// keeping opens what is kept below a folder, as a new process does.
func keeping(t *testing.T, root string, limit int64) *cubins {
	t.Helper()
	return must.Get(newCubins(root, []byte("ptxas 13.0"), limit))(t)
}

// What was kept is what was made, also for another process. Code of another text or of another ptxas is not.
func TestCubins(t *testing.T) {
	root := t.TempDir()
	image := []byte("machine code")
	keeping(t, root, 1<<20).put("text", image)
	c := keeping(t, root, 1<<20)
	if got := c.get("text"); !bytes.Equal(got, image) {
		t.Errorf("%q", got)
	}
	if got := c.get("another text"); got != nil {
		t.Errorf("%q of a text that nothing was made from", got)
	}
	other := must.Get(newCubins(root, []byte("ptxas 13.1"), 1<<20))(t)
	if got := other.get("text"); got != nil {
		t.Errorf("%q of another ptxas", got)
	}
}

// Machine code from a folder that every user may write to is not run.
func TestCubinsOfOthers(t *testing.T) {
	root := t.TempDir()
	keeping(t, root, 1<<20).put("text", []byte("machine code"))
	must.Do(t, os.Chmod(root, 0o777))
	if c, err := newCubins(root, []byte("ptxas 13.0"), 1<<20); err == nil {
		t.Errorf("it is used: %q", c.get("text"))
	}
}

// A file that is not as it was written counts as none, and is replaced.
func TestDamagedCubins(t *testing.T) {
	c := keeping(t, t.TempDir(), 1<<20)
	image := bytes.Repeat([]byte("code"), 100)
	c.put("text", image)
	c.put("another text", []byte("other code"))
	whole := must.Get(os.ReadFile(c.path("text")))(t)
	of := must.Get(os.ReadFile(c.path("another text")))(t)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, damaged := range map[string][]byte{
		"empty": {}, "cut off": whole[:len(whole)-1], "only a digest": whole[:32], "a bit flipped": flipped,
		"of another text": of, "longer": append(bytes.Clone(whole), 0), "without a digest": image,
	} {
		must.Do(t, os.WriteFile(c.path("text"), damaged, 0o600))
		if got := c.get("text"); got != nil {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		c.put("text", image)
		if got := c.get("text"); !bytes.Equal(got, image) {
			t.Errorf("%s: not replaced", name)
		}
	}
}

// However much is written, by however many processes in turn, what is kept stays below the limit, and what was used
// last stays.
func TestCubinsAreBounded(t *testing.T) {
	const limit = 1 << 16
	root := t.TempDir()
	image := bytes.Repeat([]byte{7}, 1000)
	left := filepath.Join(root, "of an older ptxas", "left.cubin")
	must.Do(t, os.MkdirAll(filepath.Dir(left), 0o700))
	must.Do(t, os.WriteFile(left, image, 0o600))
	at := time.Now().Add(-time.Hour) // file systems may keep whole seconds
	next := func(path string) {
		must.Do(t, os.Chtimes(path, at, at))
		at = at.Add(time.Second)
	}
	next(left)
	c := keeping(t, root, limit)
	c.put("used", image)
	for i := range 300 {
		if i%100 == 0 {
			c = keeping(t, root, limit)
		}
		if c.get("used") == nil {
			t.Fatalf("what is used was deleted before what is not, after %d", i)
		}
		text := strconv.Itoa(i)
		c.put(text, image)
		next(c.path(text))
		if c.get(text) == nil {
			t.Fatalf("%d is not kept", i)
		}
		next(c.path(text)) // as if it had never been asked for again
		if total := below(t, root); total > limit {
			t.Fatalf("%d bytes after %d, of %d", total, i, limit)
		}
	}
	if total := below(t, root); total < limit*3/4 {
		t.Errorf("only %d bytes of %d are kept", total, limit)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("code of an older ptxas, not used for the longest time, is kept")
	}
	if c.get("0") != nil || c.get("299") == nil {
		t.Error("the first one is kept, or the last one is not")
	}
}

// below is how many bytes the files below a folder have.
func below(t *testing.T, root string) (total int64) {
	t.Helper()
	must.Do(t, filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	}))
	return total
}
