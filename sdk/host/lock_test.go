package host

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of several faulty entries of a lock file, the same one is said every time.
func TestFaultOfALockFile(t *testing.T) {
	for range 20 {
		_, err := parseLock("lock", []byte(`{"plugins":{"d":{"sha256":"x"},"c":{"sha256":"x"},"b":{"sha256":"x"},
			"a":{"sha256":"x"}}}`))
		must.Need(t, err != nil && strings.Contains(err.Error(), "the sha256 of a is"), "%v", err)
	}
}

// What was built with the program is trusted beside it, and the user's own entry of that name comes first.
func TestBundled(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"cuda", "mine"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, Prefix+name), nil, 0o755))
	}
	lock := filepath.Join(folder, "lock.json")
	mine := `{"plugins":{"mine":{"sha256":"` + strings.Repeat("ab", 32) + `"}}}`
	must.Do(t, os.WriteFile(lock, []byte(mine), 0o600))
	h := New(Options{
		Self: filepath.Join(folder, "origami"), LockFile: lock,
		Bundled: map[string]string{"cuda": "12", "mine": "34", "missing": "56"},
	})
	defer func() { _ = h.Close() }()
	locked, err := h.lock()
	must.Need(t, err == nil && len(locked) == 2 && locked["cuda"].SHA256 == "12" &&
		locked["cuda"].Path == filepath.Join(folder, Prefix+"cuda") && locked["mine"].SHA256 == strings.Repeat("ab", 32),
		"%v %v", locked, err)
}
